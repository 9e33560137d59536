#include "tests/integration/kubernetes/backend_fixture.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "tests/integration/kubernetes/least_rights.h"
#include "tests/unit/agents/one_run.h"

namespace muster::kubernetes {

BackendPlace::BackendPlace() : kubeconfig_(LeastRightsKubeconfig(cluster_, name_space_)) {
  char name[] = "/tmp/muster-kube-state-XXXXXX";
  state_dir_ = mkdtemp(name);
  std::filesystem::create_directory(state_dir_ + "/gate");
  Start(Config());
}

BackendPlace::~BackendPlace() {
  backend_.reset();
  std::filesystem::remove_all(state_dir_);
  // Objects that a test has left take room from the next one's.
  cluster_.Admin("DELETE", "/api/v1/namespaces/" + name_space_);
}

KubernetesConfig BackendPlace::Config() const {
  KubernetesConfig config;
  config.cluster = "lab";
  config.kubeconfig = {kubeconfig_};
  config.default_image = "debian:12";
  config.allow_host_path = true;  // for gates
  return config;
}

void BackendPlace::Start(const KubernetesConfig& config,
                         const std::vector<agents::RunHandle>& adopted) {
  backend_.reset();
  absl::StatusOr<std::unique_ptr<agents::Backend>> made =
      CreateKubernetesBackend(config, state_dir_);
  ASSERT_TRUE(made.ok()) << made.status();
  backend_ = *std::move(made);
  ASSERT_TRUE(backend_->Probe().ok());
  ASSERT_TRUE(backend_->Adopt(adopted).ok());
  if (!adopted.empty()) AllowStarts(*backend_);
}

void BackendPlace::LeaveNothing(v1::JobSpec* spec) {
  spec->mutable_kubernetes()->mutable_time_to_live()->set_seconds(0);
}

testing::Matcher<std::string> BackendPlace::OutputOfCanceled(const std::string& written) {
  return testing::AnyOf(
      written, testing::MatchesRegex(
                   written + "muster: the rest of the output of main is missing: [^\n]+\n"));
}

bool BackendPlace::IsGone(const TestRun& run) {
  for (const char* kind : {"jobs", "pods", "secrets", "services"}) {
    if (!ObjectsOf(kind, run).empty()) return false;
  }
  return true;
}

TestRun BackendPlace::RunToEnd(v1::JobSpec spec) {
  TestRun run = NewRun(std::move(spec));
  Launch(*backend_, &run);
  if (!testing::Test::HasFatalFailure()) ObserveToEnd(*backend_, {&run});
  return run;
}

v1::JobSpec BackendPlace::WithGate(v1::JobSpec spec) const {
  v1::KubernetesVolume* gate = spec.mutable_kubernetes()->add_volumes();
  gate->set_mount_path("/gate");
  gate->set_host_path(state_dir_ + "/gate");
  gate->set_read_only(true);
  return spec;
}

void BackendPlace::OpenGate() const { std::ofstream(state_dir_ + "/gate/open").close(); }

std::string BackendPlace::PathOf(const std::string& kind) const {
  return (kind == "jobs" ? "/apis/batch/v1" : "/api/v1") + ("/namespaces/" + name_space_) + "/" +
         kind;
}

Json BackendPlace::ObjectsOf(const std::string& kind, const TestRun& run) {
  return cluster_.MustDo(
      "GET", PathOf(kind) + "?labelSelector=muster.dev%2Frun-key%3D" + run.handle.run_key)["items"];
}

Json BackendPlace::JobOf(const TestRun& run) {
  return cluster_.MustDo("GET", PathOf("jobs") + "/" + run.handle.run_key);
}

v1::JobSpec GpuSpec(const std::string& script, int nodes, int gpus) {
  v1::JobSpec spec = ScriptSpec(script);
  spec.set_nodes(nodes);
  spec.mutable_resources()->add_gpus()->set_count_millis(static_cast<uint64_t>(gpus) * 1000);
  return spec;
}

}  // namespace muster::kubernetes
