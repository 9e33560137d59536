// The start script's record of what it could not do.
#include "agents/kubernetes/verdict/verdict.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/kubernetes/verdict_world.h"

namespace muster::kubernetes {
namespace {

using ::testing::HasSubstr;
using verdict_world::FailedWorld;
using verdict_world::kSetupFailed;

TEST(KubernetesStartRecordTest, WhatTheStartScriptCouldNotDoIsTheConfigurations) {
  const agents::Observation not_started =
      FailedWorld()
          .Ended(127, "Error", 0, "30", "muster-end/1 seal=j phase=command problem=start\\n./gone")
          .Seen();
  EXPECT_EQ(not_started.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_EQ(not_started.failure->phase(), v1::FAILURE_PHASE_COMMAND_START);
  EXPECT_TRUE(not_started.failure->has_rank());
  EXPECT_EQ(not_started.failure->node(), not_started.nodes.at(0));
  EXPECT_FALSE(not_started.exit.has_value()) << "a program that never ran has no exit status";
  EXPECT_THAT(not_started.failure->message(), HasSubstr("started: \"./gone\": exit code 127 of "));
  EXPECT_THAT(not_started.failure->remedy(), HasSubstr("the image has the program"));
  EXPECT_THAT(FailedWorld()
                  .Ended(126, "Error", 0, "30",
                         "muster-end/1 seal=j phase=command problem=working_directory\\n/home/ann")
                  .Seen()
                  .failure->remedy(),
              HasSubstr("sbatch: --chdir=/"));
  const auto setup = FailedWorld().Ended(2, "Error", 0, "30", kSetupFailed).Seen();
  EXPECT_EQ(setup.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_EQ(setup.failure->phase(), v1::FAILURE_PHASE_SETUP);
  EXPECT_EQ(setup.failure->code(), v1::FAILURE_CODE_SETUP_FAILED);
  EXPECT_EQ(setup.failure->exit().code(), 2) << "the setup's own end";
  EXPECT_FALSE(setup.exit.has_value()) << "the setup's code is not the command's";
  EXPECT_EQ(FailedWorld().Ended(127).Seen().failure->failure_class(), v1::FAILURE_CLASS_PROGRAM)
      << "a script may end with 127 for reasons of its own";
}

}  // namespace
}  // namespace muster::kubernetes
