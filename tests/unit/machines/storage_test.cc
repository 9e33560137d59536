// Data and results of runs on a machine.
#include <filesystem>
#include <fstream>

#include "tests/unit/machines/backend_fixture.h"

namespace muster::machines {
namespace {

using agents::LaunchOutcome;
using ::testing::HasSubstr;

using StorageTest = BackendTest;

std::string ReadLine(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

TEST_F(StorageTest, InputsMustBeThereAndAreNamedIfTheyAreNot) {
  std::ofstream(dir_ / "data") << "x";
  v1::JobSpec spec = Program({"true"});
  spec.add_inputs()->set_uri("file://" + (dir_ / "data"));
  spec.add_inputs()->set_uri(dir_ / "data");
  EXPECT_EQ(RunToEnd(spec).state, v1::RUN_STATE_SUCCEEDED);
  spec.add_inputs()->set_uri(dir_ / "gone");
  const LaunchOutcome outcome = Launch(RunKeyOf(90), spec);
  EXPECT_EQ(outcome.kind, LaunchOutcome::Kind::kRefused);
  EXPECT_EQ(outcome.failure.failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_EQ(outcome.failure.code(), v1::FAILURE_CODE_INPUTS_MISSING);
  EXPECT_THAT(outcome.failure.message(), HasSubstr("inputs[2].uri"));
  EXPECT_FALSE(std::filesystem::exists(RunDir(RunKeyOf(90))));
}

TEST_F(StorageTest, WhatTheMachineCouldNotLookAtIsNotMissing) {
  std::filesystem::create_symlink(dir_ / "loop", dir_ / "loop");
  v1::JobSpec spec = Program({"true"});
  spec.add_inputs()->set_uri(dir_ / "loop");
  const LaunchOutcome loop = Launch(RunKeyOf(92), spec);
  EXPECT_EQ(loop.kind, LaunchOutcome::Kind::kRefused);
  EXPECT_EQ(loop.failure.code(), v1::FAILURE_CODE_LAUNCH_FAILED);
  EXPECT_EQ(loop.failure.failure_class(), v1::FAILURE_CLASS_INFRA);
  spec.mutable_inputs(0)->set_uri("cluster://elsewhere/data");
  const LaunchOutcome elsewhere = Launch(RunKeyOf(93), spec);
  EXPECT_EQ(elsewhere.failure.code(), v1::FAILURE_CODE_JOB_INVALID);
  EXPECT_EQ(elsewhere.failure.failure_class(), v1::FAILURE_CLASS_CONFIG);
}

TEST_F(StorageTest, ResultsGoWhereTheJobSaysOrIntoTheRunsOwnDirectory) {
  v1::JobSpec spec = Script("echo made > \"$MUSTER_RESULTS_DIR/out\"; echo $MUSTER_RESULTS_DIR");
  const std::string own = Submit(spec);
  EXPECT_EQ(AwaitEnd(own).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_THAT(Stdout(own), HasSubstr(RunDir(own)));
  spec.set_results_directory(dir_ / "results/mine");
  EXPECT_EQ(RunToEnd(spec).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(ReadLine(dir_ / "results/mine/out"), "made");
}

TEST_F(StorageTest, ResultsThatHaveNoPlaceAreTheJobsFault) {
  std::ofstream(dir_ / "file") << "x";
  v1::JobSpec spec = Program({"true"});
  spec.set_results_directory(dir_ / "file/results");
  const LaunchOutcome outcome = Launch(RunKeyOf(91), spec);
  EXPECT_EQ(outcome.kind, LaunchOutcome::Kind::kRefused);
  EXPECT_EQ(outcome.failure.failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_EQ(outcome.failure.code(), v1::FAILURE_CODE_RESULTS_DIRECTORY);
  EXPECT_THAT(outcome.failure.message(), HasSubstr("results_directory"));
}

}  // namespace
}  // namespace muster::machines
