#include "agents/app/kubernetes_settings.h"

#include "contract/text.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::agents {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class KubernetesSettingsTest : public testing::Test {
 protected:
  std::string Set(const std::string& key, const std::string& value) {
    return std::string(ToStd(ApplyFlags({{key, value}}, KubernetesSettings(&config_)).message()));
  }

  kubernetes::KubernetesConfig config_;
};

TEST_F(KubernetesSettingsTest, NamespacesAreAListOfNames) {
  EXPECT_EQ(Set("kubernetes.namespaces", "team-a,team-b"), "");
  EXPECT_THAT(config_.namespaces, ElementsAre("team-a", "team-b"));
  EXPECT_EQ(Set("kubernetes.namespaces", ""), "");
  EXPECT_THAT(config_.namespaces, IsEmpty());
  EXPECT_THAT(Set("kubernetes.namespaces", "team-a,Team_B"),
              HasSubstr("\"Team_B\" is not a namespace's name"));
}

TEST_F(KubernetesSettingsTest, ListsMayBeWrittenAsYamlHasThem) {
  const absl::Status good = ApplyYaml(
      "kubernetes:\n  namespaces: [team-a, team-b]\n  image_pull_secrets: [one, two]\n"
      "  gpu_resources: [nvidia.com/mig-1g.5gb]\n",
      "lab.yaml", "muster-agent", KubernetesSettings(&config_));
  ASSERT_TRUE(good.ok()) << good;
  EXPECT_THAT(config_.namespaces, ElementsAre("team-a", "team-b"));
  EXPECT_THAT(config_.image_pull_secrets, ElementsAre("one", "two"));
  EXPECT_THAT(config_.gpu_resources, ElementsAre("nvidia.com/mig-1g.5gb"));
}

TEST_F(KubernetesSettingsTest, OneAgentWorksInABoundedNumberOfNamespaces) {
  std::string names = "n-1";
  for (size_t i = 2; i <= kubernetes::kMaxNamespaces; ++i) names += fmt::format(",n-{}", i);
  EXPECT_EQ(Set("kubernetes.namespaces", names), "");
  EXPECT_THAT(Set("kubernetes.namespaces", names + ",one-more"),
              HasSubstr("names 33 namespaces, and one agent works in 32 at most"));
}

TEST_F(KubernetesSettingsTest, AgentRootsAreNamesAndDirectories) {
  EXPECT_EQ(Set("kubernetes.agent_roots", "data=/mnt/data,home=/srv/home"), "");
  EXPECT_EQ(config_.agent_roots.at("data"), "/mnt/data");
  EXPECT_EQ(config_.agent_roots.at("home"), "/srv/home");
  for (const char* bad : {"data", "data=", "=/mnt", "data=mnt"})
    EXPECT_THAT(Set("kubernetes.agent_roots", bad), HasSubstr("is not NAME=/DIR")) << bad;
  EXPECT_THAT(Set("kubernetes.agent_roots", "a=/x,a=/y"), HasSubstr("is there twice"));
}

TEST_F(KubernetesSettingsTest, GpusBringTheirShareAlongUnlessTheOperatorSaysNo) {
  EXPECT_TRUE(config_.default_gpu_share);
  EXPECT_EQ(Set("kubernetes.default_gpu_share", "no"), "");
  EXPECT_FALSE(config_.default_gpu_share);
}

}  // namespace
}  // namespace muster::agents
