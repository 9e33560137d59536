#include "agents/core/results_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "agents/hosts/local_host.h"
#include "tests/unit/agents/fake_backend.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::agents {
namespace {

constexpr char kKey[] = "k7m2-1-1";

class RunWithResults : public FakeBackend {
 public:
  using FakeBackend::FakeBackend;
  RunOutput OpenLogs(const RunHandle& run) override {
    ++asked;
    RunOutput output = FakeBackend::OpenLogs(run);
    output.results_directory = "/lustre/results/1";
    output.readable_results = readable;
    return output;
  }

  int asked = 0;
  std::string readable;
};

class ResultsWatchTest : public testing::Test {
 protected:
  ResultsWatchTest() {
    auto assignment = std::make_shared<agent::v1::Assignment>();
    assignment->mutable_spec()->set_status_json(true);
    run_.run_key = kKey;
    run_.assignment = assignment;
    backend_.readable = dir_.path();
  }
  Observation Look(v1::RunState state) {
    ObserveOutcome outcome;
    outcome.observations.emplace_back().run_key = kKey;
    outcome.observations.back().state = state;
    watch_.Complete({run_}, &outcome);
    return outcome.observations.back();
  }
  // Does what has been asked for, as the other thread would.
  size_t Work() {
    const std::vector<std::function<void()>> tasks = std::exchange(tasks_, {});
    for (const auto& task : tasks) task();
    return tasks.size();
  }
  void Write(const std::string& text) {
    std::ofstream(dir_.path() + "/status.json", std::ios::app) << text << "\n";
  }

  hosts::TempDir dir_;
  Shared<ClusterState> cluster_;
  RunWithResults backend_{&cluster_, dir_.path()};
  std::vector<std::function<void()>> tasks_;
  ResultsWatch watch_{&backend_,
                      [this](std::function<void()> task) { tasks_.push_back(std::move(task)); },
                      absl::ZeroDuration()};
  RunHandle run_;
};

TEST_F(ResultsWatchTest, WhereResultsAreIsToldOnceTheCommandHasBegun) {
  EXPECT_EQ(Look(v1::RUN_STATE_PENDING).results_directory, "");
  EXPECT_EQ(Look(v1::RUN_STATE_RUNNING).results_directory, "/lustre/results/1");
  EXPECT_EQ(Look(v1::RUN_STATE_SUCCEEDED).results_directory, "/lustre/results/1");
  EXPECT_EQ(backend_.asked, 1);
}

TEST_F(ResultsWatchTest, StatusJsonIsReadAgainAndAgainWhileTheRunRuns) {
  EXPECT_FALSE(Look(v1::RUN_STATE_RUNNING).progress.has_value());
  EXPECT_FALSE(Look(v1::RUN_STATE_RUNNING).progress.has_value());
  Write(R"({"status": "RUNNING", "epoch": 3, "message": "going on", "kpi": {"val_loss": 0.25}})");
  EXPECT_EQ(Work(), 1u) << "one reading at a time";
  const Observation seen = Look(v1::RUN_STATE_RUNNING);
  ASSERT_TRUE(seen.progress.has_value());
  EXPECT_EQ(seen.progress->message(), "going on");
  EXPECT_EQ(seen.progress->numbers().at("epoch"), 3);
  EXPECT_EQ(seen.progress->numbers().at("kpi.val_loss"), 0.25);
  EXPECT_TRUE(seen.progress->has_time());
  Write(R"({"epoch": 4})");
  EXPECT_EQ(Work(), 1u);
  EXPECT_EQ(Look(v1::RUN_STATE_RUNNING).progress->numbers().at("epoch"), 4);
}

TEST_F(ResultsWatchTest, WhatWasKnownStaysWhileItCannotBeRead) {
  Write(R"({"epoch": 3})");
  Look(v1::RUN_STATE_RUNNING);
  Work();
  backend_.readable = "";
  Look(v1::RUN_STATE_RUNNING);
  Work();
  EXPECT_EQ(Look(v1::RUN_STATE_RUNNING).progress->numbers().at("epoch"), 3);
}

TEST_F(ResultsWatchTest, ARunThatBeganAnewHasNoProgressOfItsEarlierStart) {
  Write(R"({"epoch": 90})");
  Look(v1::RUN_STATE_RUNNING);
  Work();
  EXPECT_TRUE(Look(v1::RUN_STATE_RUNNING).progress.has_value());
  std::filesystem::remove(dir_.path() + "/status.json");
  Work();
  EXPECT_FALSE(Look(v1::RUN_STATE_RUNNING).progress.has_value());
  Write(R"({"epoch": 91})");
  Work();
  EXPECT_TRUE(Look(v1::RUN_STATE_RUNNING).progress.has_value());
  Look(v1::RUN_STATE_PENDING);
  EXPECT_FALSE(Look(v1::RUN_STATE_RUNNING).progress.has_value());
}

TEST_F(ResultsWatchTest, ARunThatIsForgottenWhileItIsReadDoesNoHarm) {
  Look(v1::RUN_STATE_RUNNING);
  ObserveOutcome none;
  watch_.Complete({}, &none);
  EXPECT_EQ(Work(), 1u);
  watch_.Complete({}, &none);
  Look(v1::RUN_STATE_RUNNING);
  EXPECT_EQ(backend_.asked, 3) << "two looks and a reading: it was forgotten between";
}

TEST_F(ResultsWatchTest, AJobWithoutStatusJsonIsNotRead) {
  run_.assignment = std::make_shared<agent::v1::Assignment>();
  Look(v1::RUN_STATE_RUNNING);
  EXPECT_EQ(Work(), 0u);
}

}  // namespace
}  // namespace muster::agents
