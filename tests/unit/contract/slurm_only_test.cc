#include "contract/slurm_only.h"

#include <string>

#include "contract/slurm_options.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::contract {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

v1::JobSpec BatchScript(const std::string& lines) {
  v1::JobSpec spec;
  spec.set_nodes(1);
  spec.mutable_command()->set_script("#!/bin/sh\n" + lines);
  spec.mutable_slurm()->set_tasks_per_node(1);
  spec.mutable_slurm()->mutable_batch_script()->set_output("slurm-%j.out");
  return spec;
}

TEST(WhySlurmOnlyTest, AnySlurmSectionDoesThatIsNoBatchScripts) {
  EXPECT_EQ(WhySlurmOnly({}), "");
  v1::JobSpec spec;
  spec.mutable_slurm();
  EXPECT_THAT(WhySlurmOnly(spec), HasSubstr("a slurm section (in a SkyPilot task: infra: slurm)"));
}

TEST(WhySlurmOnlyTest, ABatchScriptOfOneNodeRunsAnywhere) {
  EXPECT_EQ(WhySlurmOnly(BatchScript("#SBATCH --comment=srun\n  # srun SLURM_NODELIST\nmysrun2\n")),
            "");
}

TEST(WhySlurmOnlyTest, WhatIsForMusterAloneDoesNot) {
  v1::JobSpec spec = BatchScript("true\n");
  spec.mutable_slurm()->add_extra_options(std::string(kHereOption));
  EXPECT_EQ(WhySlurmOnly(spec), "");
  spec.mutable_slurm()->add_extra_options(std::string(kHoldOption));
  EXPECT_EQ(WhySlurmOnly(spec), "");
  spec.mutable_slurm()->add_extra_options("--contiguous");
  EXPECT_EQ(WhySlurmOnly(spec), "the batch script has --contiguous");
}

TEST(WhySlurmOnlyTest, OptionsNodesAndInputDo) {
  v1::JobSpec spec = BatchScript("true\n");
  spec.mutable_slurm()->set_account("a");
  EXPECT_EQ(WhySlurmOnly(spec), "the batch script has --account=a");
  spec = BatchScript("true\n");
  spec.mutable_slurm()->set_tasks_per_node(2);
  EXPECT_EQ(WhySlurmOnly(spec), "the batch script has --ntasks-per-node=2");
  spec = BatchScript("true\n");
  spec.set_nodes(2);
  EXPECT_THAT(WhySlurmOnly(spec), HasSubstr("several nodes"));
  spec = BatchScript("true\n");
  spec.mutable_slurm()->mutable_batch_script()->set_input("in");
  EXPECT_THAT(WhySlurmOnly(spec), HasSubstr("input"));
}

TEST(WhySlurmOnlyTest, FilesThatItsUserWillLookForDo) {
  const auto why = [](const std::string& output, const std::string& error) {
    v1::JobSpec spec = BatchScript("true\n");
    spec.mutable_slurm()->mutable_batch_script()->set_output(output);
    spec.mutable_slurm()->mutable_batch_script()->set_error(error);
    return WhySlurmOnly(spec);
  };
  EXPECT_THAT(why("x-%j.out", ""), HasSubstr("names a file for its output (--output=x-%j.out)"));
  EXPECT_THAT(why("slurm-%j.out", "err"), HasSubstr("(--error=err)"));
  EXPECT_THAT(why(std::string(100, 'x'), ""), HasSubstr("(--output=...)"));
  EXPECT_EQ(why("slurm-%A_%a.out", "/dev/null"), "");
  EXPECT_EQ(why("", ""), "");
}

TEST(WhySlurmOnlyTest, AContainerOfPyxisDoes) {
  v1::JobSpec spec = BatchScript("true\n");
  spec.set_image("ubuntu:24.04");
  spec.mutable_slurm()->mutable_container()->set_writable(true);
  EXPECT_EQ(WhySlurmOnly(spec),
            "the batch script runs in a container of Pyxis (--container-image)");
}

TEST(WhySlurmOnlyTest, OfManyOptionsTheFirstEightAreNamedAndLongValuesLeftOut) {
  v1::JobSpec spec;
  v1::SlurmOptions* slurm = spec.mutable_slurm();
  slurm->set_partition("p");
  slurm->set_account(std::string(33, 'a'));
  slurm->set_qos("q");
  slurm->set_reservation("r");
  slurm->set_constraint("c");
  slurm->set_nodelist("n");
  slurm->set_exclude("e");
  slurm->set_comment("c");
  slurm->set_nice(1);
  EXPECT_THAT(WhySlurmOnly(spec), HasSubstr("slurm.partition \"p\", slurm.account, slurm.qos"));
  EXPECT_THAT(WhySlurmOnly(spec), EndsWith("slurm.comment \"c\", ..."));
  spec.mutable_command()->set_script("#!/bin/sh\n");
  slurm->mutable_batch_script();
  EXPECT_THAT(WhySlurmOnly(spec), HasSubstr("--partition=p, --account, --qos=q"));
  EXPECT_THAT(WhySlurmOnly(spec), EndsWith("--comment=c, ..."));
}

TEST(WhySlurmOnlyTest, WhatOnlySlurmGivesAScriptIsNamedWithItsLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"echo\nsrun hostname\n", "line 3 of the batch script names srun"},
      {"echo \"${SLURM_NODELIST:-0}\"", "names SLURM_NODELIST"},
      {"echo $SLURM_JOB_ID\nscancel $SLURM_JOB_ID", "line 3 of the batch script names scancel"},
      {"x=$(scontrol show hostnames)", "names scontrol"},
      {"sinfo -h", "names sinfo"},
      {"exec salloc -n1 hostname", "names salloc"},
      {"sacctmgr -n show user", "names sacctmgr"},
      {"sprio -l; true", "names sprio"},
      {"true && sreport user top", "names sreport"},
  };
  for (const auto& [lines, words] : cases) {
    EXPECT_THAT(WhySlurmOnly(BatchScript(lines)), HasSubstr(words)) << lines;
  }
}

}  // namespace
}  // namespace muster::contract
