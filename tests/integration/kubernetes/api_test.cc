// The API client against a real API server: TLS, HTTP/2, who the client is, and what it is told.
#include "agents/kubernetes/api.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/kubernetes/test_cluster.h"

namespace muster::kubernetes {
namespace {

TEST(KubernetesApiTest, TheAdministratorIsAnswered) {
  const Json version = SharedCluster().MustDo("GET", "/version");
  EXPECT_EQ(TextAt(version, "major"), "1");
}

}  // namespace
}  // namespace muster::kubernetes
