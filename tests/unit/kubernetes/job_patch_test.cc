// The patches of a Job's life.
#include <gtest/gtest.h>

#include "agents/kubernetes/manifest/manifest.h"
#include "agents/kubernetes/objects/objects.h"

namespace muster::kubernetes {
namespace {

TEST(JobPatchTest, TheLaunchPatchLetsTheJobGoUnlessItIsHeldOrQueued) {
  v1::Assignment assignment;
  const Json annotations = {{kLaunchAnnotation, kLaunchComplete}};
  EXPECT_EQ(LaunchPatch("u", assignment),
            Json({{"metadata", {{"uid", "u"}, {"annotations", annotations}}},
                  {"spec", {{"suspend", false}}}}));
  assignment.set_held(true);
  EXPECT_EQ(LaunchPatch("u", assignment),
            Json({{"metadata", {{"uid", "u"}, {"annotations", annotations}}}}));
  assignment.set_held(false);
  assignment.mutable_spec()->mutable_kubernetes()->set_queue("team");
  EXPECT_EQ(LaunchPatch("u", assignment),
            Json({{"metadata",
                   {{"uid", "u"},
                    {"annotations", annotations},
                    {"labels", {{"kueue.x-k8s.io/queue-name", "team"}}}}}}));
}

TEST(JobPatchTest, TheOtherPatchesChangeOneThingEach) {
  EXPECT_EQ(SuspendPatch("u", true),
            Json({{"metadata", {{"uid", "u"}, {"annotations", {{"muster.dev/held", "true"}}}}},
                  {"spec", {{"suspend", true}}}}));
  EXPECT_EQ(SuspendPatch("u", false),
            Json({{"metadata", {{"uid", "u"}, {"annotations", {{"muster.dev/held", nullptr}}}}},
                  {"spec", {{"suspend", false}}}}));
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
