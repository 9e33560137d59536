#include "contract/slurm_variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/slurm_only.h"

namespace muster::contract {
namespace {

using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

v1::JobSpec BatchScript(const std::string& script) {
  v1::JobSpec spec;
  spec.set_name("train");
  spec.set_nodes(1);
  spec.mutable_resources()->set_cpu_millis(8000);
  spec.mutable_command()->set_script(script);
  spec.mutable_slurm()->mutable_batch_script();
  return spec;
}

TEST(SlurmVariablesTest, AScriptFindsThoseThatItNamesAndIsNoMatterForSlurmAlone) {
  v1::JobSpec spec = BatchScript(
      "export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK\nmkdir \"${SLURM_JOB_NAME}-$SLURM_JOB_ID\"\n");
  EXPECT_EQ(WhySlurmOnly(spec), "");
  EXPECT_THAT(NamedSlurmVariables(spec, 42),
              UnorderedElementsAre(Pair("SLURM_CPUS_PER_TASK", "8"), Pair("SLURM_JOB_ID", "42"),
                                   Pair("SLURM_JOB_NAME", "train")));
  spec = BatchScript("echo $SLURM_JOBID\n");
  EXPECT_EQ(WhySlurmOnly(spec), "");
  EXPECT_THAT(NamedSlurmVariables(spec, 42), UnorderedElementsAre(Pair("SLURM_JOBID", "42")));
}

TEST(SlurmVariablesTest, WhatNoLineNamesIsNotThere) {
  EXPECT_THAT(NamedSlurmVariables(BatchScript("# SLURM_JOB_ID\nmpirun ./a MY_SLURM_JOB_ID\n"), 42),
              IsEmpty())
      << "mpirun would ask Slurm for its nodes";
  v1::JobSpec spec = BatchScript("echo $SLURM_JOB_ID\n");
  spec.mutable_slurm()->clear_batch_script();
  EXPECT_THAT(NamedSlurmVariables(spec, 42), IsEmpty()) << "it is no batch script";
}

TEST(SlurmVariablesTest, TheLeastNumberOfCoresIsOne) {
  v1::JobSpec spec = BatchScript("nproc $SLURM_CPUS_PER_TASK");
  for (uint64_t millis : {0, 500, 1000}) {
    spec.mutable_resources()->set_cpu_millis(millis);
    EXPECT_THAT(NamedSlurmVariables(spec, 1),
                UnorderedElementsAre(Pair("SLURM_CPUS_PER_TASK", "1")))
        << millis;
  }
}

}  // namespace
}  // namespace muster::contract
