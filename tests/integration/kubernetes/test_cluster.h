// A real Kubernetes cluster for tests, and how to do to it what goes wrong with clusters.
#ifndef MUSTER_TESTS_INTEGRATION_KUBERNETES_TEST_CLUSTER_H_
#define MUSTER_TESTS_INTEGRATION_KUBERNETES_TEST_CLUSTER_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agents/hosts/local_host.h"
#include "agents/kubernetes/api/api.h"
#include "agents/kubernetes/api/kubeconfig.h"
#include "tests/integration/backend/driver.h"

namespace muster::kubernetes {

using driver::kPatience;
using driver::ReadWhole;
using driver::WaitFor;

// Ends with this process, however that ends.
class TestCluster {
 public:
  struct Options {
    int nodes = 2;
    int gpus = 8;  // of each node
    // Holds further ones: "-memory", "4Gi", "-arg", "kube-apiserver=--flag=value".
    std::vector<std::string> more = {};
  };

  // Returns once it is ready, which takes four seconds; or else ends the program.
  TestCluster() : TestCluster(Options{}) {}
  explicit TestCluster(const Options& options);
  // Its files go with it.
  ~TestCluster();
  TestCluster(const TestCluster&) = delete;
  TestCluster& operator=(const TestCluster&) = delete;

  const std::string& directory() const { return directory_; }
  // Returns the file of the administrator, whose namespace is "default".
  std::string kubeconfig() const { return directory_ + "/cluster/kubeconfig"; }
  Endpoint endpoint() const;
  // Returns the API with the administrator's rights.
  Api& api() { return *api_; }
  // Makes one call as the administrator. Returns the server's answer, whatever it is; fails the
  // test and returns no status if it does not answer. A PATCH is a merge patch.
  ApiAnswer Admin(const std::string& method, const std::string& path, const Json& body = {});
  // The same, but anything than success fails the test.
  Json MustDo(const std::string& method, const std::string& path, const Json& body = {});
  // Makes a namespace of a new name, "t-1" and so on, with its default service account, because
  // tests share the cluster.
  std::string MakeNamespace(const Json& labels = Json::object());

  // ---- faults. A part is etcd, kube-apiserver, kube-controller-manager, kube-scheduler, node-1
  // ... kill -9; it is started again at once.
  void Kill(const std::string& part) const;
  // It is there and does nothing.
  void Stop(const std::string& part) const;
  void Continue(const std::string& part) const;
  // Waits until the API server serves.
  void AwaitApi();

 private:
  void Start(const Options& options);
  // Waits until that file in the cluster's directory has the text; false if the cluster is gone.
  bool AwaitText(const std::string& file, const std::string& text) const;
  // Returns the process that it was sent to; -1 if the test has failed.
  pid_t Signal(const std::string& part, int signal) const;

  std::string directory_;
  int lifeline_ = -1;  // what ends when this process does, and the cluster with it
  pid_t pid_ = -1;
  hosts::LocalHost host_;
  std::unique_ptr<Api> api_;
};

// Returns the one that most tests use, made when first asked for. A test that kills parts of it
// waits until they are back.
TestCluster& SharedCluster();

// Sets it on a node of that one, and takes it away at the end.
class NodeSpec {
 public:
  NodeSpec(const std::string& node, const Json& spec, Json undo)
      : path_("/api/v1/nodes/" + node), undo_(std::move(undo)) {
    SharedCluster().MustDo("PATCH", path_, {{"spec", spec}});
  }
  ~NodeSpec() { SharedCluster().MustDo("PATCH", path_, {{"spec", undo_}}); }
  NodeSpec(const NodeSpec&) = delete;
  NodeSpec& operator=(const NodeSpec&) = delete;

 private:
  const std::string path_;
  const Json undo_;
};

}  // namespace muster::kubernetes

#endif  // MUSTER_TESTS_INTEGRATION_KUBERNETES_TEST_CLUSTER_H_
