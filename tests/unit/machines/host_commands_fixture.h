// A directory of runs, and muster-supervisor as it serves an agent there.
#ifndef MUSTER_TESTS_UNIT_MACHINES_HOST_COMMANDS_FIXTURE_H_
#define MUSTER_TESTS_UNIT_MACHINES_HOST_COMMANDS_FIXTURE_H_

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agents/hosts/local_host.h"
#include "agents/machines/host_frames.h"
#include "agents/machines/host_report.h"
#include "agents/machines/process_search.h"
#include "agents/machines/run_records.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "tests/unit/machines/backend_fixture.h"

namespace muster::machines {

class HostCommandsTest : public ::testing::Test {
 protected:
  HostCommandsTest() { std::filesystem::create_directories(runs_); }
  ~HostCommandsTest() override {
    for (const auto& [directory, claim] : ListSupervisors()) {
      if (directory.starts_with(runs_)) kill(claim.owner.pid, SIGKILL);
    }
  }

  static std::string Program() {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "muster-supervisor";
  }
  // Has a supervisor that serves an agent answer the requests.
  std::vector<HostAnswer> Talk(std::vector<std::string> argv, const std::string& requests) {
    const auto result =
        host_.Run({.argv = std::move(argv), .stdin_data = requests, .timeout = kPatience});
    EXPECT_TRUE(result.ok() && result->ok()) << result.status();
    FrameReader frames;
    if (result.ok()) frames.Add(result->stdout_data);
    std::vector<HostAnswer> answers;
    while (std::optional<HostFrame> frame = frames.Next())
      answers.push_back(HostAnswer::Decode(*std::move(frame)).value_or(HostAnswer()));
    return answers;
  }
  static std::string Request(std::vector<std::string> words, const std::string& input = "",
                             absl::Duration patience = kPatience) {
    return HostRequest{.id = 7,
                       .patience_ms = absl::ToInt64Milliseconds(patience),
                       .words = std::move(words),
                       .input = input}
        .Encode();
  }
  HostAnswer Give(std::vector<std::string> words, const std::string& input = "") {
    const std::vector<HostAnswer> answers =
        Talk({Program(), "serve"}, Request(std::move(words), input));
    EXPECT_EQ(answers.size(), 1);
    if (answers.empty()) return {.exit_code = -1};
    EXPECT_EQ(answers[0].id, 7);
    return answers[0];
  }
  static bool IsDone(const HostAnswer& answer) {
    return answer.exit_code == kHostDone && answer.signal == 0;
  }

  std::string DirectoryOf(const std::string& key) const { return runs_ + "/" + key; }
  // A run that appends a word to the file `ran`, then waits in `rest`.
  RunSpec Spec(const std::string& key, const std::string& rest) const {
    RunSpec spec;
    spec.run_key = key;
    spec.command_words = {"/bin/sh", "-c", fmt::format("echo x >>{}; {}", dir_ / "ran", rest)};
    spec.environment = {"MUSTER_RUN_DIR=" + DirectoryOf(key)};
    spec.working_directory = "/";
    spec.grace_ms = 1000;
    return spec;
  }
  HostAnswer Start(const std::string& key, const std::string& rest) {
    return Give({"start", DirectoryOf(key), "0,1", "CUDA_VISIBLE_DEVICES=0,1"},
                Spec(key, rest).Encode());
  }
  // Reports one run, once it is at another stage than `known`.
  RankReport Report(const std::string& key, HostStage known, int patience_ms = 60'000) {
    const std::vector<HostAnswer> answers =
        Talk({Program(), "watch", runs_},
             Request({"report", "1"}, fmt::format("{} {}\n", LetterOf(known), DirectoryOf(key)),
                     absl::Milliseconds(patience_ms)));
    EXPECT_EQ(answers.size(), 1);
    const auto report = HostReport::Decode(answers.empty() ? "" : answers[0].output);
    EXPECT_TRUE(report.has_value());
    return report.has_value() && !report->runs.empty() ? report->runs[0] : RankReport{};
  }
  // Programs begin a moment after the record of their start.
  void AwaitRan() const {
    const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoSeconds(kPatience);
    while (ReadAll(dir_ / "ran").empty() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
  }
  RankReport AwaitEnd(const std::string& key) {
    RankReport report = {.run_key = key};
    while (report.stage < HostStage::kEnded) report = Report(key, report.stage);
    return report;
  }

  hosts::TempDir dir_;
  const std::string runs_ = dir_ / "runs";
  hosts::LocalHost host_;
};

}  // namespace muster::machines

#endif  // MUSTER_TESTS_UNIT_MACHINES_HOST_COMMANDS_FIXTURE_H_
