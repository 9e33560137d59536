#include "contract/slurm_only.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::contract {
namespace {

using ::testing::HasSubstr;

v1::JobSpec BatchScript(const std::string& lines) {
  v1::JobSpec spec;
  spec.set_nodes(1);
  spec.mutable_command()->set_script("#!/bin/sh\n" + lines);
  spec.mutable_slurm()->set_tasks_per_node(1);
  spec.mutable_slurm()->mutable_batch_script()->set_output("x-%j.out");
  return spec;
}

TEST(WhySlurmOnlyTest, AnySlurmSectionDoesThatIsNoBatchScripts) {
  EXPECT_EQ(WhySlurmOnly({}), "");
  v1::JobSpec spec;
  spec.mutable_slurm();
  EXPECT_THAT(WhySlurmOnly(spec), HasSubstr("slurm section"));
}

TEST(WhySlurmOnlyTest, ABatchScriptOfOneNodeRunsAnywhere) {
  EXPECT_EQ(WhySlurmOnly(BatchScript("#SBATCH --comment=srun\n  # srun SLURM_JOB_ID\nmysrun2\n")),
            "");
}

TEST(WhySlurmOnlyTest, OptionsNodesAndInputDo) {
  v1::JobSpec spec = BatchScript("true\n");
  spec.mutable_slurm()->set_account("a");
  EXPECT_THAT(WhySlurmOnly(spec), HasSubstr("options of Slurm"));
  spec = BatchScript("true\n");
  spec.mutable_slurm()->set_tasks_per_node(2);
  EXPECT_THAT(WhySlurmOnly(spec), HasSubstr("options of Slurm"));
  spec = BatchScript("true\n");
  spec.set_nodes(2);
  EXPECT_THAT(WhySlurmOnly(spec), HasSubstr("several nodes"));
  spec = BatchScript("true\n");
  spec.mutable_slurm()->mutable_batch_script()->set_input("in");
  EXPECT_THAT(WhySlurmOnly(spec), HasSubstr("input"));
}

TEST(WhySlurmOnlyTest, WhatOnlySlurmGivesAScriptIsNamedWithItsLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"echo\nsrun hostname\n", "line 3 of the batch script names srun"},
      {"echo \"${SLURM_JOB_ID:-0}\"", "names SLURM_JOB_ID"},
      {"x=$(scontrol show hostnames)", "names scontrol"},
  };
  for (const auto& [lines, words] : cases) {
    EXPECT_THAT(WhySlurmOnly(BatchScript(lines)), HasSubstr(words)) << lines;
  }
}

}  // namespace
}  // namespace muster::contract
