// The patches of a Job's life.
#include <gtest/gtest.h>

#include "agents/kubernetes/manifest/manifest.h"
#include "agents/kubernetes/objects/objects.h"

namespace muster::kubernetes {
namespace {

TEST(JobPatchTest, TheLaunchPatchLetsTheJobGoOrHasItsQueueDoSo) {
  agent::v1::Assignment assignment;
  const Json annotations = {{kLaunchAnnotation, kLaunchComplete}, {kHeldAnnotation, nullptr}};
  EXPECT_EQ(LaunchPatch("u", assignment),
            Json({{"metadata", {{"uid", "u"}, {"annotations", annotations}}},
                  {"spec", {{"suspend", false}}}}));
  assignment.mutable_spec()->mutable_kubernetes()->set_queue("team");
  EXPECT_EQ(LaunchPatch("u", assignment),
            Json({{"metadata",
                   {{"uid", "u"},
                    {"annotations", annotations},
                    {"labels", {{"kueue.x-k8s.io/queue-name", "team"}}}}}}));
}

TEST(JobPatchTest, AHoldTakesTheJobBackToWhereItWasBeforeItWasLetGo) {
  JobObject job;
  job.name.uid = "u";
  job.name.resource_version = "5";
  const Json launched_not = {{"muster.dev/launch", nullptr}};
  const Json held = {{"muster.dev/launch", nullptr}, {"muster.dev/held", "true"}};
  EXPECT_EQ(HoldPatch(job),
            Json({{"metadata", {{"uid", "u"}, {"resourceVersion", "5"}, {"annotations", held}}},
                  {"spec", {{"suspend", true}}}}));
  job.queue = "team";
  EXPECT_EQ(HoldPatch(job), Json({{"metadata",
                                   {{"uid", "u"},
                                    {"resourceVersion", "5"},
                                    {"annotations", launched_not},
                                    {"labels", {{"kueue.x-k8s.io/queue-name", "muster-held"}}}}}}))
      << "Kueue has it suspended";
}

TEST(JobPatchTest, TheOtherPatchesChangeOneThingEach) {
  EXPECT_EQ(QueuePatch("u", "team").at("metadata").at("labels"),
            Json({{"kueue.x-k8s.io/queue-name", "team"}}));
  EXPECT_EQ(QueuePatch("u", "").at("metadata").at("labels"),
            Json({{"kueue.x-k8s.io/queue-name", nullptr}}));
  v1::JobSpec spec;
  EXPECT_EQ(TimeToLiveSeconds(spec), 3600);
  spec.mutable_kubernetes()->mutable_time_to_live()->set_seconds(0);
  EXPECT_EQ(TimeToLivePatch("u", TimeToLiveSeconds(spec)),
            Json({{"metadata", {{"uid", "u"}}}, {"spec", {{"ttlSecondsAfterFinished", 0}}}}));
}

}  // namespace
}  // namespace muster::kubernetes
