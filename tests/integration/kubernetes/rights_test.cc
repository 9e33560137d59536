// The account of deploy/kubernetes, as the API client has it. Its rights are tried one by one in
// test_kubernetes_rights.py.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/kubernetes/least_rights.h"

namespace muster::kubernetes {
namespace {

using ::testing::HasSubstr;

TEST(KubernetesRightsTest, ARefusalIsToldInTheServersOwnWords) {
  TestCluster& cluster = SharedCluster();
  const std::string name_space = cluster.MakeNamespace();
  const auto endpoint = ReadKubeconfig({LeastRightsKubeconfig(cluster, name_space)}, "");
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_EQ(endpoint->name_space, name_space);
  hosts::LocalHost host;
  Api api(*endpoint, &host);

  const auto jobs = api.Call({.path = "/apis/batch/v1/namespaces/" + name_space + "/jobs"});
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_TRUE(jobs->ok()) << RefusalOf(*jobs, "list jobs");

  const auto secrets = api.Call({.path = "/api/v1/namespaces/" + name_space + "/secrets"});
  ASSERT_TRUE(secrets.ok()) << secrets.status();
  const absl::Status refusal = RefusalOf(*secrets, "list secrets");
  EXPECT_EQ(refusal.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(
      std::string(refusal.message()),
      HasSubstr("list secrets: the API server answered 403 Forbidden: secrets is forbidden: "
                "User \"system:serviceaccount:muster:muster-agent\" cannot list resource "
                "\"secrets\" in API group \"\" in the namespace \"" +
                name_space + "\""));
}

}  // namespace
}  // namespace muster::kubernetes
