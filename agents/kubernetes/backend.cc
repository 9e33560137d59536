#include "agents/kubernetes/backend.h"

#include <utility>

#include "agents/core/steady_time.h"
#include "agents/kubernetes/api/endpoint.h"
#include "agents/kubernetes/checks/checks.h"
#include "agents/kubernetes/cluster/cluster_identity.h"
#include "agents/kubernetes/kubernetes.h"
#include "agents/kubernetes/manifest/projects.h"
#include "agents/kubernetes/manifest/run_secret.h"
#include "agents/kubernetes/verdict/gang.h"
#include "contract/run_key.h"
#include "contract/text.h"
#include "daemon/log.h"
#include "fmt/format.h"
#include "sync/mutex.h"

namespace muster::kubernetes {
namespace {

// The server's groups and the first lists of the watches have this time together, because the agent
// hears nothing meanwhile.
constexpr absl::Duration kFirstListPatience = kLearnPatience;

// Pods that another scheduler starts together wait for that scheduler, and not here.
class QueuesRoom final : public RoomLeft {
 public:
  explicit QueuesRoom(std::unique_ptr<RoomLeft> room) : room_(std::move(room)) {}

  std::optional<Misfit> WaitsFor(const agent::v1::Assignment& run) const override {
    return HasOwnGangScheduler(run.spec()) ? std::nullopt : room_->WaitsFor(run);
  }
  bool Leave(const Claim& claim) override { return room_->Leave(claim); }

 private:
  const std::unique_ptr<RoomLeft> room_;
};

}  // namespace

KubernetesBackend::KubernetesBackend(KubernetesConfig config, Endpoint endpoint,
                                     const std::string& state_dir)
    : config_(WithNamespaces(std::move(config), endpoint)),
      api_(std::move(endpoint), &host_),
      calls_(&api_,
             [this](const std::string& run_key, Access what, const absl::Status& why) {
               return NoteForbidden(run_key, std::move(what), why);
             }),
      things_(&api_),
      leases_(config_.cluster, config_.namespaces, &api_),
      given_up_(state_dir + "/given-up"),
      file_room_({.path = state_dir + "/archive-bytes"}),
      logs_(state_dir + "/logs", &api_,
            [this] {
              log_news_ = true;
              Wake();
            }),
      view_(
          config_, &api_, state_dir,
          [this](const std::string& name_space) { return HomeOf(name_space).AskRights(); },
          [this] { TellInventory(); }),
      queues_(config_.namespaces, &api_, agents::SteadyNow, [this] { TellInventory(); }),
      queue_([this](const std::vector<Alike>& starting) {
        return std::make_unique<QueuesRoom>(view_.TakeSnapshot(starting));
      }),
      nowhere_("", nullptr, nullptr, nullptr) {
  for (const std::string& name_space : config_.namespaces) AddHome(name_space);
}

KubernetesBackend::~KubernetesBackend() = default;

void KubernetesBackend::SetWaker(std::function<void()> wake) {
  const MutexLock lock(mutex_);
  wake_ = std::move(wake);
}

void KubernetesBackend::Wake() {
  std::function<void()> wake;
  {
    const MutexLock lock(mutex_);
    wake = wake_;
  }
  if (wake) wake();
}

void KubernetesBackend::TellInventory() {
  inventory_news_ = true;
  Wake();
}

std::string KubernetesBackend::NamespaceOf(const agents::RunHandle& run) const {
  // The namespace of runs that name none may have changed since the run was launched.
  if (const size_t slash = run.external_id.find('/'); slash != std::string::npos)
    return run.external_id.substr(0, slash);
  if (config_.projects != nullptr) {
    const auto place = run.assignment == nullptr
                           ? absl::StatusOr<ProjectPlace>(absl::NotFoundError("no assignment"))
                           : config_.projects->Find(run.assignment->spec().project());
    return place.ok() ? place->name_space : "";
  }
  if (run.assignment == nullptr) return config_.name_space;
  return kubernetes::NamespaceOf(run.assignment->spec(), config_.name_space);
}

NamespaceRuns& KubernetesBackend::HomeOf(const std::string& name_space) {
  const auto found = homes_.find(name_space);
  return found == homes_.end() ? nowhere_ : *found->second;
}

void KubernetesBackend::AddHome(const std::string& name_space) {
  std::unique_ptr<NamespaceRuns>& home = homes_[name_space];
  if (home != nullptr) return;
  home = std::make_unique<NamespaceRuns>(
      name_space, [this](const PodObject& pod) { logs_.Watch(pod, pod.name.run_key); },
      [this] { return api_.ServerTime(); }, [this] { Wake(); });
}

uint32_t KubernetesBackend::PodsOf(const agents::RunHandle& run) {
  return run.assignment == nullptr ? 1 : PodCount(run.assignment->spec());
}

absl::Status KubernetesBackend::Probe() {
  const absl::StatusOr<v1::Inventory> inventory = view_.Inventory();
  // A server that is away or in trouble now may be well later, and files are there to be renewed;
  // what somebody has to correct stays.
  switch (inventory.status().code()) {
    case absl::StatusCode::kUnauthenticated:
      return api_.endpoint().identity.IsOfFiles() ? absl::OkStatus() : inventory.status();
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kPermissionDenied:
      return inventory.status();
    default:
      return absl::OkStatus();
  }
}

absl::Status KubernetesBackend::Adopt(const std::vector<agents::RunHandle>& runs) {
  std::set<std::string> run_keys;
  for (const agents::RunHandle& run : runs) {
    run_keys.insert(run.run_key);
    if (const std::string name_space = NamespaceOf(run); !name_space.empty()) AddHome(name_space);
    HomeOf(run).store().Want(run.run_key);
    if (run.assignment != nullptr && agents::KeepsLease(*run.assignment))
      leases_.Adopt(NamespaceOf(run), run.run_key);
    const auto key = contract::RunKey::Parse(run.run_key);
    if (!key.ok()) continue;
    const MutexLock lock(mutex_);
    instances_.insert(key->instance);
  }
  given_up_.KeepOnly(run_keys);
  if (runs.empty()) queue_.Open();
  for (const auto& [name, home] : homes_) home->Watch(&api_, &file_room_);
  const absl::Time end = agents::SteadyNow() + kFirstListPatience;
  queues_.Learn(absl::InfiniteDuration());
  // Until there are lists, looks at runs say so.
  for (const auto& [name, home] : homes_) home->AwaitFirstAnswers(end);
  return absl::OkStatus();
}

agents::Capabilities KubernetesBackend::capabilities() {
  agents::Capabilities own = {.max_launches_with_files = kMaxLaunchesWithFiles,
                              .allow_starts =
                                  [this] {
                                    queue_.Open();
                                    Wake();
                                  },
                              .note_hold = [this](const std::string& run_key,
                                                  bool held) { queue_.SetHeld(run_key, held); }};
  AddLeases(&own);
  return own;
}

absl::StatusOr<std::optional<JobObject>> KubernetesBackend::FindJob(const std::string& name_space,
                                                                    const std::string& run_key) {
  const NamespaceRuns& home = HomeOf(name_space);
  // The agent makes no runs there, so this one was never launched.
  if (&home == &nowhere_) return std::optional<JobObject>();
  if (std::optional<JobObject> known = home.store().FindJob(run_key)) return known;
  return calls_.FindRun(name_space, run_key);
}

bool KubernetesBackend::WasCancelAsked(const agents::RunHandle& run) const {
  return run.cancel_requested || WasCanceled(run.run_key);
}

bool KubernetesBackend::WasCanceled(const std::string& run_key) const {
  const MutexLock lock(mutex_);
  return canceled_.contains(run_key);
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

agents::RunOutput KubernetesBackend::OpenLogs(const agents::RunHandle& run) {
  agents::RunOutput output;
  output.logs = logs_.Logs(run.run_key, PodsOf(run));
  output.results_directory = ResultsDirectory(run);
  output.readable_results = ReadableResults(config_, output.results_directory);
  output.may_have_gpus = agents::MayHaveGpus(run);
  return output;
}

absl::StatusOr<std::unique_ptr<agents::Backend>> CreateKubernetesBackend(
    const KubernetesConfig& settings, const std::string& state_dir) {
  const absl::StatusOr<KubernetesConfig> whole = WithProjects(settings);
  if (!whole.ok()) return whole.status();
  const KubernetesConfig& config = *whole;
  for (const auto& [name, directory] : config.agent_roots) {
    if (config.storage_roots.contains(name)) continue;
    return absl::InvalidArgumentError(fmt::format(
        "kubernetes.agent_roots names {}, and kubernetes.storage_roots has no such root", name));
  }
  absl::StatusOr<Endpoint> endpoint = FindEndpoint(config);
  if (!endpoint.ok()) return endpoint.status();
  LogEvent(spdlog::level::info,
           config.projects == nullptr ? "jobs_share_namespaces" : "jobs_run_in_projects",
           {{"meaning", ProjectsLine(WithNamespaces(config, *endpoint)).seen()}});
  return std::make_unique<KubernetesBackend>(config, *std::move(endpoint), state_dir);
}

}  // namespace muster::kubernetes
