// Tests the Kubernetes backend on a real cluster. It needs root, for the cluster.
#include <stdio.h>
#include <unistd.h>

#include <memory>

#include "gtest/gtest.h"
#include "tests/integration/kubernetes/test_cluster.h"

namespace muster::kubernetes {
namespace {

std::unique_ptr<TestCluster> shared_cluster;  // of the main thread, made when first asked for

}  // namespace

TestCluster& SharedCluster() {
  if (shared_cluster == nullptr) shared_cluster = std::make_unique<TestCluster>();
  return *shared_cluster;
}

}  // namespace muster::kubernetes

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  if (geteuid() != 0) {
    fprintf(stderr, "kubernetes_backend_test needs root: it starts a Kubernetes cluster\n");
    return 1;
  }
  const int result = RUN_ALL_TESTS();
  muster::kubernetes::shared_cluster.reset();
  return result;
}
