#include "agents/kubernetes/backend.h"

#include <utility>

#include "absl/time/clock.h"
#include "agents/kubernetes/cluster_identity.h"
#include "agents/kubernetes/endpoint.h"
#include "agents/kubernetes/gang.h"
#include "contract/run_key.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

// For the first lists of the watches, together: the agent hears nothing meanwhile.
constexpr absl::Duration kFirstListPatience = absl::Seconds(5);

}  // namespace

KubernetesBackend::KubernetesBackend(KubernetesConfig config, Endpoint endpoint,
                                     const std::string& state_dir)
    : config_(std::move(config)),
      name_space_(config_.name_space.empty() ? endpoint.name_space : config_.name_space),
      api_(std::move(endpoint), &host_),
      calls_(&api_),
      store_([this](const PodObject& pod) { logs_.Watch(pod, pod.name.run_key); }),
      logs_(state_dir + "/logs", &api_,
            [this] {
              log_news_ = true;
              const std::lock_guard lock(mutex_);
              if (wake_) wake_();
            }),
      view_(config_, &api_, state_dir),
      queue_(
          [this](const v1::Assignment& run, const std::vector<StartQueue::AssignmentPtr>& before) {
            return HasOwnGangScheduler(run.spec()) ? std::nullopt : view_.WaitsFor(run, before);
          }) {}

KubernetesBackend::~KubernetesBackend() = default;

void KubernetesBackend::SetWaker(std::function<void()> wake) {
  store_.SetWaker(wake);
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

uint32_t KubernetesBackend::PodsOf(const agent::RunHandle& run) {
  return run.assignment == nullptr ? 1 : std::max<uint32_t>(1, run.assignment->spec().nodes());
}

absl::Status KubernetesBackend::Probe() {
  const absl::StatusOr<v1::Inventory> inventory = view_.Inventory();
  // A server that is away or in trouble now may be well later; what somebody has to correct stays.
  switch (inventory.status().code()) {
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return inventory.status();
    default:
      return absl::OkStatus();
  }
}

absl::Status KubernetesBackend::Adopt(const std::vector<agent::RunHandle>& runs) {
  for (const agent::RunHandle& run : runs) {
    store_.Want(run.run_key);
    if (const auto key = contract::RunKey::Parse(run.run_key); key.ok())
      instances_.insert(key->instance);
  }
  if (runs.empty()) queue_.Open();
  const std::string selector = fmt::format("{}={}", kManagedByLabel, kManagedByMuster);
  const std::string home = "/namespaces/" + Escape(name_space_);
  const auto watch = [&](std::string path, std::string labels, std::string fields,
                         ObjectSink* sink) {
    watches_.push_back(
        std::make_unique<ObjectWatch>(ObjectWatch::Settings{.path = std::move(path),
                                                            .selector = std::move(labels),
                                                            .field_selector = std::move(fields),
                                                            .trim = TrimObject},
                                      &api_, sink));
  };
  watch("/apis/batch/v1" + home + "/jobs", selector, "", store_.jobs());
  watch("/api/v1" + home + "/pods", selector, "", store_.pods());
  // Events bear no labels; the others of them say that all is well, and count for nothing.
  watch("/api/v1" + home + "/events", "", "type=Warning", store_.events());
  // Until there are lists, looks at runs say so.
  const absl::Time end = absl::Now() + kFirstListPatience;
  for (const auto& each : watches_) each->AwaitFirstAnswer(end - absl::Now());
  return absl::OkStatus();
}

void KubernetesBackend::AllowStarts() {
  queue_.Open();
  const std::lock_guard lock(mutex_);
  if (wake_) wake_();
}

absl::StatusOr<std::optional<JobObject>> KubernetesBackend::FindJob(const std::string& run_key) {
  if (std::optional<JobObject> known = store_.FindJob(run_key)) return known;
  return calls_.FindRun(name_space_, run_key);
}

bool KubernetesBackend::WasCancelAsked(const agent::RunHandle& run) const {
  const std::lock_guard lock(mutex_);
  return run.cancel_requested || canceled_.contains(run.run_key);
}

absl::Status KubernetesBackend::ConfirmCluster() {
  const std::string known = view_.KnownIdentity();
  const absl::StatusOr<std::string> now = ReadIdentity(&api_);
  // Without the right to look nothing can be told; the inventory warns of that.
  if (absl::IsPermissionDenied(now.status())) return absl::OkStatus();
  if (!now.ok()) return now.status();
  if (known.empty() || *now == known) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "the API server is that of another cluster now (kube-system has the UID {}, not {})", *now,
      known));
}

std::vector<agent::LogSource> KubernetesBackend::Logs(const agent::RunHandle& run) {
  return logs_.Logs(run.run_key, PodsOf(run));
}

absl::StatusOr<std::unique_ptr<agent::Backend>> CreateKubernetesBackend(
    const KubernetesConfig& config, const std::string& state_dir) {
  absl::StatusOr<Endpoint> endpoint = FindEndpoint(config);
  if (!endpoint.ok()) return endpoint.status();
  return std::make_unique<KubernetesBackend>(config, *std::move(endpoint), state_dir);
}

}  // namespace muster::kubernetes
