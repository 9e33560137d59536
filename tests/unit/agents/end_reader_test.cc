#include "agents/core/end_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "absl/time/clock.h"
#include "agents/hosts/local_host.h"
#include "tests/unit/agents/fake_backend.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::agents {
namespace {

using testing::HasSubstr;

constexpr char kKey[] = "k7m2-1-1";
constexpr char kFault[] = "slurmstepd: Stale file handle\n";

// Plays the backend of one run with many ranks; its files and its results are where the test puts
// them.
class RunWithFiles : public FakeBackend {
 public:
  RunWithFiles(Shared<ClusterState>* cluster, std::string directory, hosts::Host* host)
      : FakeBackend(cluster, directory), directory_(std::move(directory)), host_(host) {}

  RunOutput OpenLogs(const RunHandle& run) override {
    RunOutput output;
    for (uint32_t rank = 0; rank < 100; ++rank) {
      for (const auto& [stream, suffix] :
           {std::pair(v1::LOG_STREAM_STDOUT, "out"), std::pair(v1::LOG_STREAM_STDERR, "err")}) {
        output.logs.push_back(
            {rank, stream, fmt::format("{}/rank-{}.{}", directory_, rank, suffix)});
      }
    }
    output.start_mark = start_mark;
    output.may_have_gpus = MayHaveGpus(run);
    if (has_results)
      output.readable_results =
          directory_ + "/results" + (run.run_key == kKey ? "" : "-" + run.run_key);
    return output;
  }
  Capabilities capabilities() override {
    Capabilities abilities = FakeBackend::capabilities();
    abilities.output_host = host_;
    abilities.judges_ends = judges_ends;
    return abilities;
  }

  bool has_results = true;
  bool judges_ends = false;
  std::string start_mark;

 private:
  const std::string directory_;
  hosts::Host* host_;
};

// A host of which nothing can be read for now.
class SilentHost : public hosts::LocalHost {
 public:
  bool is_silent = true;
  std::optional<hosts::CommandResult> search;  // what find comes to instead
  absl::Status file_error;                     // not OK: of each file that is read
  std::vector<std::string> searched;           // directories
  absl::Duration search_takes;

  absl::StatusOr<hosts::CommandResult> Run(const hosts::Command& command) override {
    if (is_silent) return absl::UnavailableError("no route");
    searched.push_back(command.argv.at(2));
    absl::SleepFor(search_takes);
    return search.has_value() ? *search : LocalHost::Run(command);
  }
  absl::StatusOr<std::string> ReadFileRange(std::string_view path, uint64_t offset,
                                            size_t max_bytes) override {
    if (!file_error.ok()) return file_error;
    return LocalHost::ReadFileRange(path, offset, max_bytes);
  }
  std::vector<absl::StatusOr<std::string>> ReadMany(
      const std::vector<hosts::FilePart>& parts) override {
    if (file_error.ok()) return LocalHost::ReadMany(parts);
    return std::vector<absl::StatusOr<std::string>>(parts.size(), file_error);
  }
  std::vector<absl::StatusOr<hosts::FileInfo>> StatMany(
      const std::vector<std::string>& paths) override {
    if (!is_silent) return LocalHost::StatMany(paths);
    return std::vector<absl::StatusOr<hosts::FileInfo>>(paths.size(),
                                                        absl::UnavailableError("no route"));
  }
};

class EndReaderTest : public testing::Test {
 protected:
  EndReaderTest() {
    auto assignment = std::make_shared<agent::v1::Assignment>();
    assignment->mutable_spec()->set_status_json(true);
    run_.run_key = kKey;
    run_.assignment = assignment;
    std::filesystem::create_directories(dir_.path() + "/results/a/b");
  }

  void AskForGpus() {
    auto assignment = std::make_shared<agent::v1::Assignment>(*run_.assignment);
    assignment->mutable_spec()->mutable_resources()->add_gpus()->set_count_millis(1000);
    run_.assignment = assignment;
  }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(dir_.path() + "/" + name) << text;
  }
  void WriteStatus(const std::string& status, const std::string& where = "results") {
    Write(where + "/status.json", R"({"status": "STARTED", "message": "go"})"
                                  "\n{\"status\": \"" +
                                      status + "\", \"message\": \"so it ends\"}\n");
  }
  // Returns the reported end.
  Observation Complete(v1::RunState state, uint32_t rank = 0) { return Ask(&reader_, state, rank); }
  // Completes the end once there is nothing left to wait for but the host's answer.
  Observation CompleteInTheEnd(v1::RunState state) { return Ask(&hasty_, state, 0); }
  void ExpectHeld(const Observation& seen, const std::string& why) {
    EXPECT_EQ(seen.state, v1::RUN_STATE_FINISHING) << seen.evidence.DebugString();
    EXPECT_THAT(seen.reason.message(), HasSubstr(why));
    EXPECT_FALSE(seen.failure.has_value());
    EXPECT_FALSE(seen.exit.has_value());
  }

  hosts::TempDir dir_;
  Shared<ClusterState> cluster_;
  SilentHost host_;
  RunWithFiles backend_{&cluster_, dir_.path(), &host_};
  EndReader reader_{&backend_};
  EndReader hasty_{&backend_, {.grace = absl::ZeroDuration()}};
  RunHandle run_;
  absl::Time start_time_ = absl::Now();

  // Completes the ends one after the other, as the agent does.
  static void CompleteAll(EndReader* reader, const std::vector<RunHandle>& runs,
                          ObserveOutcome* outcome) {
    for (Observation& told : reader->Read(reader->TakeEnds(runs, outcome)))
      outcome->observations.push_back(std::move(told));
  }
  Observation Ask(EndReader* reader, v1::RunState state, uint32_t rank) {
    Observation seen;
    seen.run_key = kKey;
    seen.state = state;
    seen.start_time = start_time_;
    if (state == v1::RUN_STATE_FAILED) {
      seen.exit.emplace().set_rank(rank);
      seen.failure.emplace().set_failure_class(v1::FAILURE_CLASS_PROGRAM);
    }
    ObserveOutcome outcome;
    outcome.observations.push_back(seen);
    CompleteAll(reader, {run_}, &outcome);
    EXPECT_EQ(outcome.observations.size(), 1u);
    return outcome.observations.empty() ? Observation() : outcome.observations.front();
  }
};

TEST_F(EndReaderTest, LeavesEndsAloneThatTheClusterHasJudged) {
  Write("rank-0.err", kFault);
  WriteStatus("FAILURE");
  backend_.judges_ends = true;
  EndReader reader(&backend_);
  // The host is silent: nobody asks it.
  EXPECT_EQ(Ask(&reader, v1::RUN_STATE_SUCCEEDED, 0).state, v1::RUN_STATE_SUCCEEDED);
  const Observation failed = Ask(&reader, v1::RUN_STATE_FAILED, 0);
  EXPECT_EQ(failed.state, v1::RUN_STATE_FAILED);
  EXPECT_TRUE(failed.failure->quotes().empty());
}

TEST_F(EndReaderTest, ReadsTheRankThatFailedFirstAndTheLowestOnes) {
  host_.is_silent = false;
  Write("rank-99.err", kFault);
  Write("rank-50.err", kFault);
  EXPECT_TRUE(Complete(v1::RUN_STATE_FAILED, 99).failure->retriable());
  EXPECT_FALSE(Complete(v1::RUN_STATE_FAILED, 0).failure->retriable());
  Write("rank-1.out", kFault);
  const auto seen = Complete(v1::RUN_STATE_FAILED, 0);
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_EQ(seen.failure->quotes(0).source(), "rank-1.out");
}

TEST_F(EndReaderTest, OfALongLogOnlyTheEndIsRead) {
  host_.is_silent = false;
  Write("rank-0.err", kFault + std::string(contract::kMaxLogTailBytes, 'x'));
  EXPECT_FALSE(Complete(v1::RUN_STATE_FAILED).failure->retriable());
  Write("rank-0.err", std::string(2 * contract::kMaxLogTailBytes, 'x') + "\n" + kFault);
  EXPECT_TRUE(Complete(v1::RUN_STATE_FAILED).failure->retriable());
}

TEST_F(EndReaderTest, AHostThatIsAwayHoldsAFailureBackUntilItAnswers) {
  Write("rank-0.err", kFault);
  for (int i = 0; i < 4; ++i) ExpectHeld(CompleteInTheEnd(v1::RUN_STATE_FAILED), "no route");
  host_.is_silent = false;
  EXPECT_TRUE(CompleteInTheEnd(v1::RUN_STATE_FAILED).failure->retriable());
}

TEST_F(EndReaderTest, AHostThatIsAwayMakesNoFailureOfASuccess) {
  WriteStatus("SUCCESS");
  for (int i = 0; i < 4; ++i) ExpectHeld(CompleteInTheEnd(v1::RUN_STATE_SUCCEEDED), "no route");
  host_.is_silent = false;
  const Observation seen = CompleteInTheEnd(v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(seen.state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_FALSE(seen.failure.has_value());
}

TEST_F(EndReaderTest, ASearchThatFailedIsNotAnAnswer) {
  host_.is_silent = false;
  WriteStatus("SUCCESS");
  hosts::CommandResult search;
  search.exit_code = 1;
  for (const char* error : {"Input/output error", "Stale file handle", "Permission denied"}) {
    search.stderr_data = fmt::format("find: 'results': {}\n", error);
    host_.search = search;
    for (int i = 0; i < 4; ++i) ExpectHeld(CompleteInTheEnd(v1::RUN_STATE_SUCCEEDED), error);
  }
  search = {};
  search.exit_code = 127;
  host_.search = search;
  ExpectHeld(CompleteInTheEnd(v1::RUN_STATE_SUCCEEDED), "code 127");
  search = {};
  search.signal = 9;
  host_.search = search;
  ExpectHeld(CompleteInTheEnd(v1::RUN_STATE_SUCCEEDED), "signal 9");
  host_.search.reset();
  EXPECT_EQ(CompleteInTheEnd(v1::RUN_STATE_SUCCEEDED).state, v1::RUN_STATE_SUCCEEDED);
}

TEST_F(EndReaderTest, AStatusJsonThatCannotBeReadIsNotAMissingOne) {
  host_.is_silent = false;
  WriteStatus("SUCCESS");
  for (const absl::Status& error :
       {absl::UnknownError("Input/output error"), absl::PermissionDeniedError("Permission denied"),
        absl::UnavailableError("no route")}) {
    host_.file_error = error;
    ExpectHeld(CompleteInTheEnd(v1::RUN_STATE_SUCCEEDED), std::string(error.message()));
  }
  host_.file_error = absl::OkStatus();
  EXPECT_EQ(CompleteInTheEnd(v1::RUN_STATE_SUCCEEDED).state, v1::RUN_STATE_SUCCEEDED);
}

TEST_F(EndReaderTest, LogsThatAHostThatAnswersCannotReadAreLeftOut) {
  host_.is_silent = false;
  run_.assignment = nullptr;
  host_.file_error = absl::UnknownError("Input/output error");
  ExpectHeld(Complete(v1::RUN_STATE_FAILED), "Input/output error");
  const Observation seen = CompleteInTheEnd(v1::RUN_STATE_FAILED);
  EXPECT_EQ(seen.state, v1::RUN_STATE_FAILED);
  EXPECT_FALSE(seen.failure->retriable());
}

TEST_F(EndReaderTest, RoundsThatFollowEachOtherAreNotTime) {
  host_.is_silent = false;
  WriteStatus("RUNNING");
  for (int i = 0; i < 10; ++i) ExpectHeld(Complete(v1::RUN_STATE_SUCCEEDED), "may still come");
  WriteStatus("SUCCESS");
  EXPECT_EQ(Complete(v1::RUN_STATE_SUCCEEDED).state, v1::RUN_STATE_SUCCEEDED);
}

TEST_F(EndReaderTest, NoResultsDirectoryIsNoSuccess) {
  host_.is_silent = false;
  std::filesystem::remove_all(dir_.path() + "/results");
  const Observation seen = CompleteInTheEnd(v1::RUN_STATE_SUCCEEDED);
  ASSERT_EQ(seen.state, v1::RUN_STATE_FAILED);
  EXPECT_THAT(seen.failure->message(), HasSubstr("has no entry"));
}

TEST_F(EndReaderTest, TheLastNumbersOfStatusJsonAreToldWithTheEnd) {
  host_.is_silent = false;
  Write("results/status.json", R"({"status": "SUCCESS", "epoch": 9, "kpi": {"mAP": 0.5}})"
                               "\n");
  const Observation seen = Complete(v1::RUN_STATE_SUCCEEDED);
  ASSERT_TRUE(seen.progress.has_value());
  EXPECT_EQ(seen.progress->numbers().at("epoch"), 9);
  EXPECT_EQ(seen.progress->numbers().at("kpi.mAP"), 0.5);
}

TEST_F(EndReaderTest, ASuccessThatStatusJsonConfirmsIsOne) {
  host_.is_silent = false;
  WriteStatus("SUCCESS", "results/a/b");
  const auto seen = Complete(v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(seen.state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_FALSE(seen.failure.has_value());
}

TEST_F(EndReaderTest, AFailureInStatusJsonIsOneAndItsMessageIsQuoted) {
  host_.is_silent = false;
  WriteStatus("FAILURE");
  const auto seen = Complete(v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(seen.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_PROGRAM);
  EXPECT_EQ(seen.failure->quotes(0).source(), "status.json");
  EXPECT_EQ(seen.failure->quotes(0).text(), "so it ends");
  EXPECT_THAT(seen.evidence.detail(), HasSubstr("status.json"));
}

TEST_F(EndReaderTest, AnEndWithoutALastEntryIsNoSuccess) {
  host_.is_silent = false;
  WriteStatus("RUNNING");
  const auto seen = CompleteInTheEnd(v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(seen.state, v1::RUN_STATE_FAILED);
  EXPECT_THAT(seen.failure->message(), HasSubstr("no last entry"));
}

TEST_F(EndReaderTest, NoStatusJsonIsNoSuccess) {
  host_.is_silent = false;
  const auto seen = CompleteInTheEnd(v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(seen.state, v1::RUN_STATE_FAILED);
  EXPECT_THAT(seen.failure->message(), HasSubstr("has no entry"));
}

TEST_F(EndReaderTest, AStatusJsonOfAnEarlierRunSaysNothing) {
  host_.is_silent = false;
  WriteStatus("FAILURE");
  start_time_ = absl::Now() + absl::Seconds(60);
  const auto seen = CompleteInTheEnd(v1::RUN_STATE_SUCCEEDED);
  EXPECT_THAT(seen.failure->message(), HasSubstr("has no entry"));
}

TEST_F(EndReaderTest, AClustersFaultThatTheProgramCaughtIsWorthAnotherRun) {
  host_.is_silent = false;
  WriteStatus("FAILURE");
  Write("rank-0.err", kFault);
  EXPECT_TRUE(Complete(v1::RUN_STATE_SUCCEEDED).failure->retriable());
}

TEST_F(EndReaderTest, OtherStatesPassAsTheyAre) {
  EXPECT_EQ(Complete(v1::RUN_STATE_RUNNING).state, v1::RUN_STATE_RUNNING);
  EXPECT_EQ(Complete(v1::RUN_STATE_CANCELED).state, v1::RUN_STATE_CANCELED);
}

TEST_F(EndReaderTest, AResultsDirectoryThatSettingsNoLongerTellMakesNoFailure) {
  host_.is_silent = false;
  backend_.has_results = false;
  ExpectHeld(Complete(v1::RUN_STATE_SUCCEEDED), "no results directory");
  backend_.has_results = true;
  WriteStatus("SUCCESS");
  EXPECT_EQ(Complete(v1::RUN_STATE_SUCCEEDED).state, v1::RUN_STATE_SUCCEEDED);
}

TEST_F(EndReaderTest, AnEndIsHeldBackForABoundedTimeAndThenToldWithWhatCouldNotBeRead) {
  EndReader patient(&backend_, {.max_hold = absl::Hours(1)});
  EndReader weary(&backend_, {.max_hold = absl::ZeroDuration()});
  ExpectHeld(Ask(&patient, v1::RUN_STATE_SUCCEEDED, 0), "no route");
  const Observation told = Ask(&weary, v1::RUN_STATE_SUCCEEDED, 0);
  EXPECT_EQ(told.state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_FALSE(told.failure.has_value());
  EXPECT_THAT(told.evidence.detail(), AllOf(HasSubstr("status.json"), HasSubstr("no route")));
  const Observation failed = Ask(&weary, v1::RUN_STATE_FAILED, 0);
  EXPECT_EQ(failed.state, v1::RUN_STATE_FAILED);
  EXPECT_THAT(failed.evidence.detail(), HasSubstr("no route"));
}

TEST_F(EndReaderTest, EndsTakeTurnsAndAreHeldTogetherFromTheFirstRound) {
  host_.is_silent = false;
  std::vector<RunHandle> runs;
  ObserveOutcome ends;
  for (const char* key : {"k7m2-1-1", "k7m2-2-1", "k7m2-3-1"}) {
    runs.push_back(run_);
    runs.back().run_key = key;
    Observation& seen = ends.observations.emplace_back();
    seen.run_key = key;
    seen.state = v1::RUN_STATE_SUCCEEDED;
  }
  hosts::CommandResult search;
  search.exit_code = 1;
  search.stderr_data = "find: 'results': Input/output error\n";
  host_.search = search;
  // The round is over before it has read the first one, and then after any.
  EndReader busy(&backend_, {.max_round = absl::ZeroDuration()});
  ObserveOutcome outcome = ends;
  CompleteAll(&busy, runs, &outcome);
  ASSERT_EQ(outcome.observations.size(), 3u);
  for (const Observation& seen : outcome.observations) ExpectHeld(seen, "is not read yet");
  EXPECT_THAT(host_.searched, testing::IsEmpty());
  // Time enough for one.
  host_.search_takes = absl::Milliseconds(20);
  EndReader slow(&backend_, {.max_round = absl::Milliseconds(10)});
  for (int round = 0; round < 4; ++round) {
    outcome = ends;
    CompleteAll(&slow, runs, &outcome);
  }
  const std::string results = dir_.path() + "/results";
  EXPECT_THAT(host_.searched,
              testing::ElementsAre(results, results + "-k7m2-2-1", results + "-k7m2-3-1", results));
  EndReader weary(&backend_, {.max_round = absl::ZeroDuration(), .max_hold = absl::ZeroDuration()});
  CompleteAll(&weary, runs, &ends);
  for (const Observation& seen : ends.observations) {
    EXPECT_EQ(seen.state, v1::RUN_STATE_SUCCEEDED);
    EXPECT_THAT(seen.evidence.detail(), HasSubstr("is not read yet"));
  }
}

TEST_F(EndReaderTest, WhileEndsAreReadOthersPassAndEndsThatComeAreHeldBackForABoundedTime) {
  const auto observed = [](v1::RunState state) {
    Observation seen;
    seen.run_key = kKey;
    seen.state = state;
    return seen;
  };
  const auto take = [&](EndReader* reader, v1::RunState state) {
    ObserveOutcome outcome;
    outcome.observations.push_back(observed(state));
    EXPECT_THAT(reader->TakeEnds({run_}, &outcome), testing::IsEmpty());
    EXPECT_EQ(outcome.observations.size(), 1u);
    return outcome.observations.at(0);
  };
  ObserveOutcome first;
  first.observations.push_back(observed(v1::RUN_STATE_SUCCEEDED));
  const std::vector<EndReader::End> ends = reader_.TakeEnds({run_}, &first);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_THAT(first.observations, testing::IsEmpty());
  EXPECT_GT(reader_.reading_for(), absl::ZeroDuration());
  EXPECT_EQ(take(&reader_, v1::RUN_STATE_RUNNING).state, v1::RUN_STATE_RUNNING);
  ExpectHeld(take(&reader_, v1::RUN_STATE_SUCCEEDED), "is not read yet");

  EndReader weary(&backend_, {.max_hold = absl::ZeroDuration()});
  first.observations = {observed(v1::RUN_STATE_SUCCEEDED)};
  ASSERT_EQ(weary.TakeEnds({run_}, &first).size(), 1u);
  EXPECT_EQ(take(&weary, v1::RUN_STATE_SUCCEEDED).state, v1::RUN_STATE_SUCCEEDED);

  host_.is_silent = false;
  WriteStatus("SUCCESS");
  const std::vector<Observation> told = reader_.Read(ends);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(reader_.reading_for(), absl::ZeroDuration());
}

TEST_F(EndReaderTest, AnEndThatHasLeftNothingToReadWaitsForNoTurn) {
  run_.assignment = nullptr;
  EndReader busy(&backend_, {.max_round = absl::ZeroDuration()});
  EXPECT_EQ(Ask(&busy, v1::RUN_STATE_SUCCEEDED, 0).state, v1::RUN_STATE_SUCCEEDED);
}

TEST_F(EndReaderTest, WhetherAStatusJsonIsTheRunsIsAskedOfTheFileServersClock) {
  host_.is_silent = false;
  Write("mark", "");
  backend_.start_mark = dir_.path() + "/mark";
  WriteStatus("SUCCESS");
  start_time_ = absl::Now() + absl::Hours(1);  // the node's clock
  EXPECT_EQ(CompleteInTheEnd(v1::RUN_STATE_SUCCEEDED).state, v1::RUN_STATE_SUCCEEDED);
  start_time_ = absl::Now() - absl::Hours(1);
  const auto now = std::filesystem::last_write_time(backend_.start_mark);
  std::filesystem::last_write_time(backend_.start_mark, now + std::chrono::minutes(1));
  EXPECT_EQ(CompleteInTheEnd(v1::RUN_STATE_SUCCEEDED).state, v1::RUN_STATE_FAILED);
  std::filesystem::remove(backend_.start_mark);
  EXPECT_EQ(CompleteInTheEnd(v1::RUN_STATE_SUCCEEDED).state, v1::RUN_STATE_SUCCEEDED)
      << "then the begin that the cluster tells counts";
}

TEST_F(EndReaderTest, WhatARunWithoutGpusSaysOfThemIsItsOwnFailure) {
  host_.is_silent = false;
  Write("rank-0.err", "torch.cuda.is_available(): False\nValueError: bad data\n");
  const Observation plain = Complete(v1::RUN_STATE_FAILED);
  EXPECT_EQ(plain.failure->failure_class(), v1::FAILURE_CLASS_PROGRAM);
  EXPECT_FALSE(plain.failure->retriable());
  AskForGpus();
  EXPECT_TRUE(Complete(v1::RUN_STATE_FAILED).failure->retriable());
}

}  // namespace
}  // namespace muster::agents
