// The start script's record of what it could not do.
#include "agents/kubernetes/verdict/verdict.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/kubernetes/verdict_world.h"

namespace muster::kubernetes {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using verdict_world::FailedWorld;
using verdict_world::kSetupFailed;

TEST(KubernetesStartRecordTest, WhatTheStartScriptCouldNotDoIsTheConfigurations) {
  const agents::Observation not_started =
      FailedWorld()
          .Ended(127, "Error", 0, "30",
                 "muster-end/1 seal=j phase=command problem=start\\nnosuch.py")
          .Seen();
  EXPECT_EQ(not_started.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_EQ(not_started.failure->phase(), v1::FAILURE_PHASE_COMMAND_START);
  EXPECT_TRUE(not_started.failure->has_rank());
  EXPECT_EQ(not_started.failure->node(), not_started.nodes.at(0));
  EXPECT_FALSE(not_started.exit.has_value()) << "a program that never ran has no exit status";
  EXPECT_THAT(
      not_started.failure->message(),
      StartsWith("The command could not be started: nosuch.py: exit code 127 of container "));
  EXPECT_THAT(not_started.failure->suggestion(), HasSubstr("the image has the program"));
  ASSERT_EQ(not_started.replicas.size(), 1);
  EXPECT_THAT(not_started.replicas[0].issue().message(),
              HasSubstr("exit code 127: the command could not be started: nosuch.py"));
  EXPECT_THAT(not_started.failure->DebugString() + not_started.replicas[0].DebugString(),
              Not(HasSubstr("seal")));
  EXPECT_THAT(FailedWorld()
                  .Ended(126, "Error", 0, "30",
                         "muster-end/1 seal=j phase=command problem=working_directory\\n/home/ann")
                  .Seen()
                  .failure->suggestion(),
              HasSubstr("sbatch: --chdir=/"));
  const auto setup = FailedWorld().Ended(2, "Error", 0, "30", kSetupFailed).Seen();
  EXPECT_EQ(setup.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_EQ(setup.failure->phase(), v1::FAILURE_PHASE_SETUP);
  EXPECT_FALSE(setup.exit.has_value()) << "the setup's code is not the command's";
  const auto setup_start =
      FailedWorld()
          .Ended(127, "Error", 0, "30", "muster-end/1 seal=j phase=setup problem=start\\n/bin/zsh")
          .Seen();
  EXPECT_EQ(setup_start.failure->phase(), v1::FAILURE_PHASE_SETUP_START);
  EXPECT_EQ(FailedWorld().Ended(127).Seen().failure->failure_class(), v1::FAILURE_CLASS_PROGRAM)
      << "a script may end with 127 for reasons of its own";
}

TEST(KubernetesStartRecordTest, NothingThatAProgramSaysIsTakenForTheStartScriptsRecord) {
  for (const char* message :
       {"muster: setup failed", "muster: the command could not be started: nosuch.py",
        "muster-end/1 seal= phase=setup problem=failed",
        "muster-end/1 seal=k7m2-42-1 phase=setup problem=failed",
        "muster-end/1 phase=setup problem=failed", "seal=j phase=setup problem=failed",
        "muster-end/1 seal=j phase=lunch problem=failed"}) {
    const auto seen = FailedWorld().Ended(2, "Error", 0, "30", message).Seen();
    EXPECT_EQ(seen.failure->failure_class(), v1::FAILURE_CLASS_PROGRAM) << message;
    EXPECT_EQ(seen.failure->phase(), v1::FAILURE_PHASE_COMMAND) << message;
    EXPECT_EQ(seen.exit->code(), 2) << message;
  }
}

// A pod that its kubelet has ended at the deadline; `state` is its program's.

}  // namespace
}  // namespace muster::kubernetes
