#include "agents/core/run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/task_array.h"

namespace muster::agents {
namespace {

using testing::ElementsAre;

TEST(RunProgramTest, AScriptRunsWithItsOwnFirstLineElseWithSh) {
  EXPECT_THAT(WordsForScript("echo hi\n", "/d/f"), ElementsAre("/bin/sh", "/d/f"));
  EXPECT_THAT(WordsForScript("#!/bin/bash\necho", "/d/f"), ElementsAre("/bin/bash", "/d/f"));
  EXPECT_THAT(WordsForScript("#! /usr/bin/env  python3 -u \r\n", "/d/f"),
              ElementsAre("/usr/bin/env", "python3 -u", "/d/f"));
  EXPECT_THAT(WordsForScript("#!/bin/cat", "/d/f"), ElementsAre("/bin/cat", "/d/f"));
  EXPECT_THAT(WordsForScript("#!", "/d/f"), ElementsAre("/bin/sh", "/d/f"));
  EXPECT_THAT(WordsForScript("#!  \nx", "/d/f"), ElementsAre("/bin/sh", "/d/f"));
}

TEST(RunProgramTest, AScriptGetsItsArgumentsAfterItsOwnName) {
  v1::Command command;
  command.set_script("#!/bin/bash -e\n");
  command.add_script_arguments("a b");
  command.add_script_arguments("");
  EXPECT_THAT(WordsForCommand(command, "/d/f"), ElementsAre("/bin/bash", "-e", "/d/f", "a b", ""));
  command.mutable_argv()->add_args("true");
  EXPECT_THAT(WordsForCommand(command, "/d/f"), ElementsAre("true"));
}

TEST(RunProgramTest, SizesAreThoseOfTheRunAndAtLeastOne) {
  agent::v1::Assignment assignment;
  assignment.set_job_id(42);
  auto variables = RunVariables(assignment, "lab", "/r");
  EXPECT_EQ(variables["WORLD_SIZE"], "1");
  EXPECT_EQ(variables["NPROC_PER_NODE"], "1");
  EXPECT_EQ(variables["NUM_GPU_PER_NODE"], "0");
  assignment.mutable_spec()->set_nodes(3);
  assignment.mutable_spec()->mutable_resources()->add_gpus()->set_count_millis(4000);
  variables = RunVariables(assignment, "lab", "/r");
  EXPECT_EQ(variables["WORLD_SIZE"], "3");
  EXPECT_EQ(variables["NPROC_PER_NODE"], "4");
  EXPECT_EQ(variables["MASTER_PORT"], "29542");
  EXPECT_EQ(variables["MUSTER_RUN_DIR"], "/r");
}

TEST(RunProgramTest, AShareOfAGpuCountsAsOne) {
  agent::v1::Assignment assignment;
  assignment.mutable_spec()->mutable_resources()->add_gpus()->set_count_millis(250);
  auto variables = RunVariables(assignment, "lab", "/r");
  EXPECT_EQ(variables["NUM_GPU_PER_NODE"], "1");
  EXPECT_EQ(variables["SKYPILOT_NUM_GPUS_PER_NODE"], "1");
  EXPECT_EQ(variables["NPROC_PER_NODE"], "1");
}

TEST(RunProgramTest, ATaskOfAJobArrayFindsTheArraysNumber) {
  agent::v1::Assignment assignment;
  assignment.set_job_id(43);
  EXPECT_FALSE(RunVariables(assignment, "lab", "/r").contains("SLURM_ARRAY_JOB_ID"));
  assignment.mutable_spec()->mutable_slurm()->mutable_batch_script();
  contract::SetArrayTask({.id = 7, .count = 3, .max_id = 9, .place = 1}, assignment.mutable_spec());
  EXPECT_EQ(RunVariables(assignment, "lab", "/r").at("SLURM_ARRAY_JOB_ID"), "42");
}

}  // namespace
}  // namespace muster::agents
