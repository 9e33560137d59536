#include "agents/kubernetes/api/endpoint.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::kubernetes {
namespace {

using ::testing::ElementsAre;

TEST(NamespacesTest, TheOneOfRunsThatNameNoneIsAlwaysAmongThemAndFirst) {
  Endpoint endpoint;
  endpoint.name_space = "context";
  KubernetesConfig config;
  EXPECT_THAT(WithNamespaces(config, endpoint).namespaces, ElementsAre("context"));
  config.namespaces = {"team-a", "lab", "team-a"};
  EXPECT_THAT(WithNamespaces(config, endpoint).namespaces, ElementsAre("context", "team-a", "lab"));
  config.name_space = "lab";
  const KubernetesConfig filled = WithNamespaces(config, endpoint);
  EXPECT_EQ(filled.name_space, "lab");
  EXPECT_THAT(filled.namespaces, ElementsAre("lab", "team-a"));
  EXPECT_THAT(WithNamespaces(filled, endpoint).namespaces, ElementsAre("lab", "team-a"));
}

}  // namespace
}  // namespace muster::kubernetes
