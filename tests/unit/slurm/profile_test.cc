#include "agents/slurm/profile.h"

#include "contract/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Returns the profile of TAO.
Profile Tao() {
  Profile profile;
  profile.gpus_per_node = 8;
  profile.defaults.mutable_time_limit()->set_seconds(4 * 3600);
  profile.defaults.mutable_resources()->set_cpu_millis(16'000);
  profile.defaults.mutable_resources()->add_gpus()->set_count_millis(4'000);
  v1::SlurmOptions& slurm = *profile.defaults.mutable_slurm();
  slurm.set_partition("gpu,gpu2");
  slurm.set_account("team");
  slurm.set_requeue(true);
  slurm.mutable_timeout()->set_seconds(13'680);
  slurm.add_extra_options("--wait-all-nodes=1");
  return profile;
}

v1::JobSpec Plain() {
  v1::JobSpec spec;
  spec.set_nodes(1);
  return spec;
}

v1::JobSpec Applied(const v1::JobSpec& spec, const Profile& profile = Tao()) {
  const absl::StatusOr<v1::JobSpec> applied = ApplyProfile(spec, profile);
  EXPECT_TRUE(applied.ok()) << applied.status();
  return applied.value_or(v1::JobSpec());
}

TEST(ProfileTest, AJobThatSaysNothingGetsAll) {
  const v1::JobSpec spec = Applied(Plain());
  EXPECT_EQ(spec.nodes(), 1u);
  EXPECT_EQ(spec.time_limit().seconds(), 4 * 3600);
  EXPECT_EQ(spec.resources().cpu_millis(), 16'000u);
  EXPECT_EQ(spec.resources().gpus(0).count_millis(), 4'000u);
  EXPECT_EQ(spec.slurm().partition(), "gpu,gpu2");
  EXPECT_EQ(spec.slurm().account(), "team");
  EXPECT_TRUE(spec.slurm().requeue());
  EXPECT_EQ(spec.slurm().timeout().seconds(), 13'680);
  EXPECT_THAT(spec.slurm().extra_options(), ElementsAre("--wait-all-nodes=1"));
  EXPECT_FALSE(spec.slurm().exclusive());
}

TEST(ProfileTest, WhatAJobSaysStays) {
  v1::JobSpec spec = Plain();
  spec.mutable_time_limit()->set_seconds(600);
  spec.mutable_resources()->set_cpu_millis(2000);
  spec.mutable_resources()->add_gpus()->set_count_millis(1000);
  spec.mutable_slurm()->set_account("other");
  spec.mutable_slurm()->set_requeue(false);
  spec.mutable_slurm()->add_extra_options("--wait-all-nodes=0");
  const v1::JobSpec applied = Applied(spec);
  EXPECT_EQ(applied.time_limit().seconds(), 600);
  EXPECT_EQ(applied.resources().cpu_millis(), 2000u);
  EXPECT_EQ(applied.resources().gpus(0).count_millis(), 1000u);
  EXPECT_EQ(applied.slurm().account(), "other");
  EXPECT_FALSE(applied.slurm().requeue());
  EXPECT_THAT(applied.slurm().extra_options(), ElementsAre("--wait-all-nodes=0"));
}

TEST(ProfileTest, TheTimeoutIsForTheProfilesOwnTimeLimit) {
  for (const int hours : {1, 24}) {
    v1::JobSpec spec = Plain();
    spec.mutable_time_limit()->set_seconds(hours * 3600);
    EXPECT_FALSE(Applied(spec).slurm().has_timeout()) << hours << " h";
  }
  Profile profile = Tao();
  profile.defaults.mutable_time_limit()->set_seconds(600);
  EXPECT_FALSE(Applied(Plain(), profile).slurm().has_timeout()) << "it is longer than the limit";
}

TEST(ProfileTest, OneCoreAndNoGpusAreKeptWhereTheyAreAskedFor) {
  v1::JobSpec spec = Plain();
  spec.mutable_resources()->set_cpu_millis(1000);
  spec.mutable_resources()->add_gpus()->set_count_millis(0);
  const v1::JobSpec applied = Applied(spec);
  EXPECT_EQ(applied.resources().cpu_millis(), 1000u);
  EXPECT_THAT(applied.resources().gpus(), IsEmpty());
  spec.mutable_slurm()->set_partition("gpu");
  EXPECT_THAT(Applied(spec).resources().gpus(), IsEmpty()) << "Slurm would be asked for gpu:0";
}

TEST(ProfileTest, AJobInAPartitionOfItsOwnGetsNoMeasureOfAnotherOne) {
  for (const bool in_slurm : {true, false}) {
    v1::JobSpec spec = Plain();
    if (in_slurm) {
      spec.mutable_slurm()->set_partition("cpu");
    } else {
      spec.mutable_placement()->set_pool("cpu");
    }
    const v1::JobSpec applied = Applied(spec);
    EXPECT_EQ(applied.slurm().partition(), in_slurm ? "cpu" : "");
    EXPECT_TRUE(applied.resources().gpus().empty());
    EXPECT_EQ(applied.resources().cpu_millis(), 0u);
    EXPECT_FALSE(applied.has_time_limit());
    EXPECT_EQ(applied.slurm().account(), "team");
  }
}

TEST(ProfileTest, ABatchScriptKeepsItsOwnMeasure) {
  v1::JobSpec spec = Plain();
  spec.mutable_slurm()->mutable_batch_script();
  const v1::JobSpec applied = Applied(spec);
  EXPECT_EQ(applied.slurm().partition(), "gpu,gpu2");
  EXPECT_EQ(applied.slurm().account(), "team");
  EXPECT_TRUE(applied.resources().gpus().empty());
  EXPECT_FALSE(applied.slurm().has_timeout());
}

TEST(ProfileTest, AnEmptyProfileChangesNothingThatSlurmSees) {
  v1::JobSpec spec = Plain();
  spec.mutable_slurm()->set_qos("high");
  spec.mutable_resources();
  EXPECT_EQ(Applied(spec, {}).SerializeAsString(), spec.SerializeAsString());
}

TEST(ProfileTest, AllGpusOfANodeTakeTheNode) {
  v1::JobSpec spec = Plain();
  spec.set_nodes(2);
  spec.mutable_resources()->add_gpus()->set_count_millis(8000);
  const v1::JobSpec applied = Applied(spec);
  EXPECT_TRUE(applied.slurm().exclusive());
  EXPECT_EQ(applied.nodes(), 2u);
}

TEST(ProfileTest, MoreGpusThanANodeHasAreRefusedWithTheNodesThatWouldDo) {
  v1::JobSpec spec = Plain();
  spec.mutable_resources()->add_gpus()->set_count_millis(12'000);
  const auto bad = contract::GetBadRequest(ApplyProfile(spec, Tao()).status());
  ASSERT_TRUE(bad.has_value());
  EXPECT_EQ(bad->field_violations(0).field(), "resources.gpus");
  EXPECT_THAT(bad->field_violations(0).description(), HasSubstr("ask for 2 nodes with 8 each"));
}

TEST(ProfileTest, WholeNodesAreCountedAsTaoCountsThem) {
  EXPECT_EQ(RoundToWholeNodes(1, 4, 8), (WholeNodes{1, 4, false}));
  EXPECT_EQ(RoundToWholeNodes(3, 4, 8), (WholeNodes{3, 4, false}));
  EXPECT_EQ(RoundToWholeNodes(1, 8, 8), (WholeNodes{1, 8, true}));
  EXPECT_EQ(RoundToWholeNodes(2, 8, 8), (WholeNodes{2, 8, true}));
  EXPECT_EQ(RoundToWholeNodes(1, 12, 8), (WholeNodes{2, 8, true}));
  EXPECT_EQ(RoundToWholeNodes(2, 32, 8), (WholeNodes{4, 8, true}));
}

TEST(ProfileTest, AJobThatMayHaveGpusIsToldFromOneThatHasNone) {
  EXPECT_FALSE(MayHaveGpus(Plain()));
  EXPECT_TRUE(MayHaveGpus(Applied(Plain()))) << "the profile's";
  v1::JobSpec none = Plain();
  none.mutable_resources()->add_gpus()->set_count_millis(0);
  none.mutable_slurm()->set_gres("nvme:1");
  EXPECT_FALSE(MayHaveGpus(Applied(none)));
  v1::JobSpec whole = Plain();
  whole.mutable_slurm()->set_exclusive(true);
  v1::JobSpec script = Plain();
  script.mutable_slurm()->mutable_batch_script();
  v1::JobSpec words = Plain();
  words.mutable_slurm()->add_extra_options("--gpus-per-node=4");
  for (const v1::JobSpec& spec : {whole, script, words})
    EXPECT_TRUE(MayHaveGpus(spec)) << spec.ShortDebugString();
}

}  // namespace
}  // namespace muster::slurm
