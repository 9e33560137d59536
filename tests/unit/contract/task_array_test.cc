#include "contract/task_array.h"

#include "contract/slurm_only.h"
#include "contract/validate.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::contract {
namespace {

using ::testing::HasSubstr;

v1::JobSpec BatchScript() {
  v1::JobSpec spec;
  spec.mutable_command()->set_script("#!/bin/sh\n./train\n");
  spec.mutable_slurm()->mutable_batch_script();
  return spec;
}

std::string RefusalOfTask(const v1::JobSpec& spec) {
  return std::string(NormalizeJobSpec(spec).status().message());
}

TEST(ArrayTaskTest, WhatWasSetIsFound) {
  v1::JobSpec spec = BatchScript();
  EXPECT_FALSE(FindArrayTask(spec).has_value());
  SetArrayTask({.id = 7, .count = 3, .min_id = 1, .max_id = 9, .step = 2, .place = 1}, &spec);
  EXPECT_EQ(RefusalOfTask(spec), "");
  const auto task = FindArrayTask(spec);
  ASSERT_TRUE(task.has_value());
  EXPECT_EQ(task->id, 7u);
  EXPECT_EQ(task->count, 3u);
  EXPECT_EQ(task->min_id, 1u);
  EXPECT_EQ(task->max_id, 9u);
  EXPECT_EQ(task->step, 2u);
  EXPECT_EQ(ArrayNumber(43, *task), 42u);
}

TEST(ArrayTaskTest, ATaskThatLeavesItsArrayKeepsItsIdAlone) {
  v1::JobSpec spec = BatchScript();
  SetArrayTask({.id = 7, .count = 4, .min_id = 1, .max_id = 9, .step = 2, .place = 3}, &spec);
  LeaveArray(&spec);
  const auto task = FindArrayTask(spec);
  ASSERT_TRUE(task.has_value());
  EXPECT_EQ(task->id, 7u);
  EXPECT_EQ(task->count, 1u);
  EXPECT_EQ(task->min_id, 7u);
  EXPECT_EQ(task->max_id, 7u);
  EXPECT_EQ(task->step, 1u);
  EXPECT_EQ(ArrayNumber(43, *task), 43u);
  v1::JobSpec other = BatchScript();
  LeaveArray(&other);
  EXPECT_TRUE(other.env().empty()) << "it is no task";
}

TEST(ArrayTaskTest, EveryKindOfClusterGivesATaskTheVariablesOfItsArray) {
  v1::JobSpec spec = BatchScript();
  spec.set_nodes(1);
  spec.mutable_command()->set_script("echo $SLURM_ARRAY_JOB_ID ${SLURM_ARRAY_TASK_ID}\n");
  EXPECT_THAT(WhySlurmOnly(spec), HasSubstr("names SLURM_ARRAY_JOB_ID"));
  SetArrayTask({}, &spec);
  EXPECT_EQ(WhySlurmOnly(spec), "");
  spec.mutable_command()->set_script("echo $SLURM_ARRAY_TASK_ID $SLURM_NODELIST\n");
  EXPECT_THAT(WhySlurmOnly(spec), HasSubstr("names SLURM_NODELIST"));
}

TEST(ArrayTaskTest, OnlySlurmKeepsALimitOfSimultaneousTasks) {
  v1::JobSpec spec = BatchScript();
  spec.set_nodes(1);
  SetArrayTask({.count = 3, .max_id = 2, .limit = 2}, &spec);
  EXPECT_EQ(RefusalOfTask(spec), "");
  EXPECT_EQ(FindArrayTask(spec)->limit, 2u);
  EXPECT_THAT(WhySlurmOnly(spec), HasSubstr("a limit of simultaneous tasks"));
  SetArrayTask({.count = 3, .max_id = 2}, &spec);
  EXPECT_EQ(spec.env().count("MUSTER_ARRAY_LIMIT"), 0u);
  EXPECT_EQ(FindArrayTask(spec)->limit, 0u);
  EXPECT_EQ(WhySlurmOnly(spec), "");
  (*spec.mutable_env())["MUSTER_ARRAY_LIMIT"] = "many";
  EXPECT_THAT(RefusalOfTask(spec), HasSubstr("MUSTER_ARRAY_LIMIT"));
}

TEST(ArrayTaskTest, HalfATaskIsRefused) {
  v1::JobSpec spec = BatchScript();
  (*spec.mutable_env())["SLURM_ARRAY_TASK_ID"] = "3";
  EXPECT_THAT(RefusalOfTask(spec), HasSubstr("SLURM_ARRAY_TASK_COUNT"));
  EXPECT_THAT(RefusalOfTask(spec), HasSubstr("--array"));
  SetArrayTask({}, &spec);
  for (const char* value : {"10000", "-1", "x", ""}) {
    (*spec.mutable_env())["MUSTER_ARRAY_PLACE"] = value;
    EXPECT_THAT(RefusalOfTask(spec), HasSubstr("MUSTER_ARRAY_PLACE")) << value;
  }
}

TEST(ArrayTaskTest, AnArrayWithoutTasksOrWithoutAStepIsRefused) {
  for (const char* variable : {"SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_STEP"}) {
    v1::JobSpec spec = BatchScript();
    SetArrayTask({}, &spec);
    (*spec.mutable_env())[variable] = "0";
    EXPECT_THAT(RefusalOfTask(spec), HasSubstr(variable));
    EXPECT_THAT(RefusalOfTask(spec), HasSubstr("a number of 1 to "));
    EXPECT_FALSE(FindArrayTask(spec).has_value()) << variable;
  }
}

TEST(ArrayTaskTest, APlaceBehindTheLastTaskIsRefused) {
  v1::JobSpec spec = BatchScript();
  SetArrayTask({.id = 9, .count = 3, .min_id = 1, .max_id = 9, .place = 2}, &spec);
  EXPECT_EQ(RefusalOfTask(spec), "");
  SetArrayTask({.id = 9, .count = 3, .min_id = 1, .max_id = 9, .place = 3}, &spec);
  EXPECT_THAT(RefusalOfTask(spec), HasSubstr("MUSTER_ARRAY_PLACE"));
  EXPECT_THAT(RefusalOfTask(spec), HasSubstr("is 3, in an array of 3"));
  EXPECT_FALSE(FindArrayTask(spec).has_value());
}

TEST(ArrayTaskTest, ATaskOfAnEarlierReleaseWithoutACountLeavesItsArray) {
  v1::JobSpec spec = BatchScript();
  SetArrayTask({.id = 7, .count = 0, .min_id = 1, .max_id = 9}, &spec);
  LeaveArray(&spec);
  EXPECT_EQ(RefusalOfTask(spec), "");
  EXPECT_EQ(FindArrayTask(spec)->id, 7u);
}

TEST(ArrayTaskTest, NoOtherJobMayCallItselfATask) {
  v1::JobSpec spec;
  spec.mutable_command()->set_script("true");
  SetArrayTask({}, &spec);
  EXPECT_THAT(RefusalOfTask(spec), HasSubstr("only a batch script"));
}

}  // namespace
}  // namespace muster::contract
