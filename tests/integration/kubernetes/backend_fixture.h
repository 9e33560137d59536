// A backend with the account that deploy/kubernetes gives an agent, in a namespace of its own.
#ifndef MUSTER_TESTS_INTEGRATION_KUBERNETES_BACKEND_FIXTURE_H_
#define MUSTER_TESTS_INTEGRATION_KUBERNETES_BACKEND_FIXTURE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agents/core/backend.h"
#include "agents/kubernetes/kubernetes.h"
#include "gtest/gtest.h"
#include "tests/integration/backend/contract.h"
#include "tests/integration/kubernetes/test_cluster.h"

namespace muster::kubernetes {

using driver::Hold;
using driver::Launch;
using driver::NewRun;
using driver::ObserveOnce;
using driver::ObserveToEnd;
using driver::ObserveUntil;
using driver::Output;
using driver::ScriptSpec;
using driver::TestRun;

class BackendPlace : public driver::Place {
 public:
  BackendPlace();
  ~BackendPlace() override;

  agents::Backend& backend() override { return *backend_; }
  void Restart(const std::vector<agents::RunHandle>& journal) override { Start(Config(), journal); }
  void LeaveNothing(v1::JobSpec* spec) override;
  bool IsGone(const TestRun& run) override;
  // A node may break a log off as it removes a deleted pod's container: then nobody can tell
  // whether that was all, and a line says so.
  testing::Matcher<std::string> OutputOfCanceled(const std::string& written) override;

  KubernetesConfig Config() const;
  // Starts an agent with the runs of its journal; the one that was there is gone.
  void Start(const KubernetesConfig& config, const std::vector<agents::RunHandle>& adopted = {});
  TestRun RunToEnd(v1::JobSpec spec);
  // Makes a spec whose script can wait for OpenGate with kAwaitGate: containers see nothing else of
  // this machine that changes.
  static constexpr char kAwaitGate[] = "while [ ! -e /gate/open ]; do sleep 0.1; done";
  v1::JobSpec WithGate(v1::JobSpec spec) const;
  void OpenGate() const;
  // Returns the path of a collection of the namespace: "jobs", "pods", "secrets", "services".
  std::string PathOf(const std::string& kind) const;
  // Returns the run's objects of that kind.
  Json ObjectsOf(const std::string& kind, const TestRun& run);
  Json JobOf(const TestRun& run);

  TestCluster& cluster_ = SharedCluster();
  const std::string name_space_ = cluster_.MakeNamespace();
  const std::string kubeconfig_;
  std::string state_dir_;
  std::unique_ptr<agents::Backend> backend_;
};

class BackendFixture : public testing::Test, protected BackendPlace {};

// Makes a spec with so many GPUs on each of so many nodes.
v1::JobSpec GpuSpec(const std::string& script, int nodes, int gpus);

}  // namespace muster::kubernetes

#endif  // MUSTER_TESTS_INTEGRATION_KUBERNETES_BACKEND_FIXTURE_H_
