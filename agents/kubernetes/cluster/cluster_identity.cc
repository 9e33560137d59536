#include "agents/kubernetes/cluster/cluster_identity.h"

#include "agents/hosts/local_host.h"
#include "agents/hosts/private_modes.h"
#include "contract/errors.h"
#include "contract/text.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"
#include "sync/mutex.h"

namespace muster::kubernetes {
namespace {

constexpr char kFileName[] = "/kubernetes-identity";
// A UID has 36 characters.
constexpr size_t kMaxIdentityBytes = 256;

}  // namespace

absl::StatusOr<std::string> ReadVersion(Api* api) {
  constexpr char kRemedy[] =
      "see that the kubeconfig's server is the right address, and can be reached from here";
  const absl::StatusOr<Json> body = api->Get("/version", "/version");
  if (absl::IsUnavailable(body.status())) {
    return absl::UnavailableError(fmt::format("{}; {}", ToStd(body.status().message()), kRemedy));
  }
  if (!body.ok()) return body.status();
  std::string version = TextAt(*body, "gitVersion");
  if (version.empty()) {
    return absl::UnavailableError(fmt::format(
        "get /version: the answer names no gitVersion, so this is no Kubernetes API server; {}",
        kRemedy));
  }
  return version.starts_with('v') ? version.substr(1) : version;
}

absl::StatusOr<std::string> ReadIdentity(Api* api) {
  constexpr char kPath[] = "/api/v1/namespaces/kube-system";
  const absl::StatusOr<Json> body = api->Get(kPath, kPath);
  if (!body.ok()) return body.status();
  std::string uid = TextAt(*body, "metadata/uid");
  if (uid.empty()) return absl::UnavailableError("get namespace kube-system: it has no UID");
  return uid;
}

ClusterIdentity::ClusterIdentity(const std::string& directory) : path_(directory + kFileName) {
  hosts::LocalHost host;
  if (absl::StatusOr<std::string> text = host.ReadFile(path_, kMaxIdentityBytes); text.ok())
    known_ = *std::move(text);
}

std::string ClusterIdentity::known() const {
  const MutexLock lock(mutex_);
  return known_;
}

absl::StatusOr<std::string> ClusterIdentity::Learn(Api* api) {
  const absl::StatusOr<std::string> read = ReadIdentity(api);
  const MutexLock lock(mutex_);
  if (!read.ok() && known_.empty()) {
    return absl::Status(
        read.status().code(),
        fmt::format("{}; the UID of the namespace kube-system tells this cluster from others, and "
                    "must be read once: give the agent's account the right to get that namespace "
                    "(deploy/kubernetes/account.yaml)",
                    ToStd(read.status().message())));
  }
  if (!read.ok() || *read == known_) return known_;
  if (!known_.empty()) {
    return contract::Error(
        absl::StatusCode::kFailedPrecondition, "WRONG_CLUSTER",
        fmt::format(
            "this is another cluster: its namespace kube-system has the UID {}, and the "
            "runs of this agent are on the one with {}; correct the kubeconfig or its "
            "context, or give this cluster an agent with a state_dir of its own ({} has the "
            "old UID)",
            *read, known_, path_));
  }
  known_ = *read;
  hosts::LocalHost host;
  absl::Status status =
      host.MakeDirectories(path_.substr(0, path_.rfind('/')), hosts::kPrivateDirectory);
  if (status.ok()) status = host.WriteFile(path_, known_, {.mode = 0600, .sync = true});
  // It is learnt anew next time; until then a change would not be noticed over a restart.
  if (!status.ok()) spdlog::warn("{} cannot be written: {}", path_, ToStd(status.message()));
  return known_;
}

}  // namespace muster::kubernetes
