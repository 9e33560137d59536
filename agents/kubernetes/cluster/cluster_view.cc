#include "agents/kubernetes/cluster/cluster_view.h"

#include <utility>

#include "absl/time/clock.h"
#include "agents/core/proto_time.h"
#include "agents/kubernetes/api/endpoint.h"
#include "agents/kubernetes/cluster/admission_facts.h"
#include "agents/kubernetes/cluster/cluster_identity.h"
#include "agents/kubernetes/cluster/inventory.h"
#include "agents/kubernetes/cluster/namespace_view.h"
#include "agents/kubernetes/cluster/obstacle.h"
#include "agents/kubernetes/cluster/room_book.h"
#include "agents/kubernetes/manifest/configured_facts.h"
#include "agents/kubernetes/objects/kept_objects.h"
#include "contract/issues.h"
#include "contract/text.h"
#include "sync/mutex.h"

namespace muster::kubernetes {
namespace {

// Each of the first lists has this time: a busy server answers within it, and the caller still
// waits.
constexpr absl::Duration kFirstListTimeout = absl::Seconds(20);

}  // namespace

class ClusterView::Impl {
 public:
  Impl(const KubernetesConfig& config, Api* api, const std::string& state_dir, RunsState runs_state,
       const std::function<void()>& on_recovery)
      : config_(WithNamespaces(config, api->endpoint())),
        runs_state_(std::move(runs_state)),
        api_(*api),
        identity_(state_dir),
        kept_nodes_([this](const Json& node) { return ParseNode(node, config_.gpu_resources); },
                    {.on_moves =
                         [this](const auto& moves) {
                           const MutexLock lock(mutex_);
                           for (const auto& [before, now] : moves) {
                             all_rooms_.MoveNode(before, now);
                             shown_rooms_.MoveNode(before, now);
                           }
                         },
                     .is_other = AreToldApart,
                     .on_other = on_recovery}),
        kept_pods_(PodParser(config_.gpu_resources), {.on_moves = PodsInto(&all_rooms_)}),
        nodes_({.path = "/api/v1/nodes", .on_recovery = on_recovery}, api, &kept_nodes_),
        pods_(WatchPods("/api/v1/pods", api, &kept_pods_, on_recovery)) {
    for (const std::string& name : config_.namespaces) {
      namespaces_.push_back(std::make_unique<NamespaceView>(name, config_.gpu_resources, api,
                                                            PodsInto(&shown_rooms_), on_recovery));
    }
  }

  absl::StatusOr<v1::Inventory> Inventory() {
    const absl::StatusOr<std::string> version = ReadVersion(&api_);
    if (!version.ok()) return version.status();
    const absl::StatusOr<std::string> identity = identity_.Learn(&api_);
    if (!identity.ok()) return identity.status();
    nodes_.Hurry();
    pods_->Hurry();
    for (const auto& space : namespaces_) space->Hurry();
    AwaitFirstAnswers();
    for (const auto& space : namespaces_) {
      space->Judge(runs_state_ == nullptr ? absl::OkStatus() : runs_state_(space->name()));
    }
    const Seen seen = Look();
    v1::Inventory inventory;
    inventory.set_identity(*identity);
    inventory.set_scheduler_version("kubernetes " + *version);
    *inventory.mutable_observed_at() = agents::ToProto(absl::Now());
    inventory.set_takes_uploads(config_.files != nullptr);
    inventory.set_takes_shell_environment(config_.files != nullptr);
    inventory.set_takes_secrets(true);
    inventory.set_images(config_.default_image.empty() ? v1::IMAGE_SUPPORT_REQUIRED
                                                       : v1::IMAGE_SUPPORT_OPTIONAL);
    for (v1::Pool& pool : PoolsOf(seen, config_)) *inventory.add_pools() = std::move(pool);
    *inventory.mutable_admission() = ConfiguredFacts(config_);
    v1::KubernetesFacts& facts = *inventory.mutable_admission()->mutable_kubernetes();
    if (seen.knows_nodes) *facts.mutable_nodes() = NodeFactsOf(seen.rooms);
    for (v1::NamespaceFacts& space : *facts.mutable_namespaces()) {
      if (const SeenNamespace* one = seen.Find(space.name()))
        TellLimits(one->quotas, one->ranges, &space);
    }
    for (v1::ClusterIssue& issue : IssuesOf(seen, config_))
      *inventory.add_issues() = std::move(issue);
    if (api_.endpoint().skips_tls_verify) *inventory.add_issues() = contract::TlsUnverified();
    return inventory;
  }

  std::string KnownIdentity() const { return identity_.known(); }

  absl::StatusOr<v1::ClusterDetails> Describe() {
    AwaitFirstAnswers();
    Seen seen = Look();
    seen.pods = Pods();
    if (!seen.knows_nodes && !absl::IsPermissionDenied(seen.nodes_problem))
      return absl::UnavailableError(seen.nodes_problem.message());
    v1::ClusterDetails details = DetailsOf(seen, config_);
    *details.mutable_observed_at() = agents::ToProto(absl::Now());
    return details;
  }

  // Nothing: it fits now, or what would tell is not known.
  std::optional<Misfit> FindObstacle(const agent::v1::Assignment& run) {
    const Seen seen = Look();
    return kubernetes::FindObstacle(NeedIn(run, config_, seen), seen);
  }
  void FillResources(agent::v1::Assignment* run) {
    v1::Resources& resources = *run->mutable_spec()->mutable_resources();
    const bool is_open = resources.cpu_millis() == 0 || resources.memory_bytes() == 0;
    if (!is_open || resources.gpus_size() == 0 || resources.gpus(0).count_millis() == 0) return;
    const RunNeed need = NeedIn(*run, config_, Look());
    resources.set_cpu_millis(static_cast<uint64_t>(need.each.cpu_millis));
    resources.set_memory_bytes(static_cast<uint64_t>(need.each.memory_bytes));
  }
  std::unique_ptr<RoomLeft> TakeSnapshot(const std::vector<Alike>& starting) {
    // The lock is held, so that no pod comes to a node between the looks at nodes and at runs.
    const MutexLock lock(mutex_);
    const RoomBook& rooms = RoomsLocked();
    return RoomBehind(
        starting, [&](const std::string& run_key) { return rooms.PodsOf(run_key); }, config_,
        LookLocked());
  }

  absl::Status SpellGpuType(v1::JobSpec* spec) {
    const MutexLock lock(mutex_);
    const std::set<std::string>& labels = RoomsLocked().GpuLabels();
    for (v1::GpuRequest& gpus : *spec->mutable_resources()->mutable_gpus()) {
      if (gpus.type().empty()) continue;
      if (absl::Status clear = CheckGpuType(gpus, labels, config_); !clear.ok()) return clear;
      gpus.set_type(kubernetes::SpellGpuType(gpus.type(), labels, config_));
    }
    return absl::OkStatus();
  }

 private:
  void AwaitFirstAnswers() {
    nodes_.AwaitFirstAnswer(kFirstListTimeout);
    pods_->AwaitFirstAnswer(kFirstListTimeout);
    // A cluster whose pods are all hidden may show those of some namespaces.
    if (AreAllPodsHidden()) {
      for (const auto& space : namespaces_) space->WatchItsPods();
    }
    for (const auto& space : namespaces_) space->Await(kFirstListTimeout);
  }

  bool AreAllPodsHidden() const { return absl::IsPermissionDenied(pods_->state()); }

  // Notes whose pods are seen, and why not all.
  void LookAtPods(Seen* seen) const {
    if (!AreAllPodsHidden()) {
      const bool has_listed = pods_->AwaitFirstList(absl::ZeroDuration());
      seen->pod_scope = has_listed ? PodScope::kCluster : PodScope::kNone;
      if (!has_listed) seen->pods_problem = pods_->state();
      return;
    }
    seen->pods_problem = pods_->state();
    for (const auto& space : namespaces_) {
      if (space->pods_state().ok()) seen->pod_scope = PodScope::kNamespace;
    }
  }

  std::vector<PodUse> Pods() const {
    if (!AreAllPodsHidden()) return kept_pods_.All();
    std::vector<PodUse> pods;
    for (const auto& space : namespaces_) {
      for (PodUse& pod : space->Pods()) pods.push_back(std::move(pod));
    }
    return pods;
  }

  OnPods PodsInto(RoomBook* rooms) {
    return [this, rooms](const KeptPods::Moves& moves) {
      const MutexLock lock(mutex_);
      for (const auto& [before, now] : moves) rooms->MovePod(before, now);
    };
  }

  RoomBook& RoomsLocked() { return AreAllPodsHidden() ? shown_rooms_ : all_rooms_; }

  Seen Look() {
    const MutexLock lock(mutex_);
    return LookLocked();
  }

  Seen LookLocked() {
    Seen seen;
    seen.knows_nodes = nodes_.AwaitFirstList(absl::ZeroDuration());
    seen.nodes_problem = nodes_.state();
    LookAtPods(&seen);
    RoomBook& rooms = RoomsLocked();
    seen.gpu_types = rooms.GpuLabels();
    seen.rooms = rooms.Rooms();
    for (const auto& space : namespaces_) seen.namespaces.push_back(space->Look());
    return seen;
  }

  const KubernetesConfig config_;
  const RunsState runs_state_;
  Api& api_;
  ClusterIdentity identity_;
  // After those of the kept objects, which tell of changes with their own.
  Mutex mutex_;
  // They hold the pods of the whole cluster, and those of the namespaces.
  RoomBook all_rooms_ ABSL_GUARDED_BY(mutex_){config_};
  RoomBook shown_rooms_ ABSL_GUARDED_BY(mutex_){config_};
  KeptObjects<NodeObject> kept_nodes_;
  KeptPods kept_pods_;
  // After what they tell of changes.
  ObjectWatch nodes_;
  const std::unique_ptr<ObjectWatch> pods_;                 // of the whole cluster
  std::vector<std::unique_ptr<NamespaceView>> namespaces_;  // the default one first
};

ClusterView::ClusterView(const KubernetesConfig& config, Api* api, const std::string& state_dir,
                         RunsState runs_state, std::function<void()> on_recovery)
    : impl_(std::make_unique<Impl>(config, api, state_dir, std::move(runs_state), on_recovery)) {}
ClusterView::~ClusterView() = default;

absl::StatusOr<v1::Inventory> ClusterView::Inventory() { return impl_->Inventory(); }
std::string ClusterView::KnownIdentity() const { return impl_->KnownIdentity(); }
absl::StatusOr<v1::ClusterDetails> ClusterView::Describe() { return impl_->Describe(); }

std::optional<std::string> ClusterView::Refusal(const agent::v1::Assignment& run) {
  std::optional<Misfit> misfit = impl_->FindObstacle(run);
  if (!misfit.has_value() || !misfit->is_final) return std::nullopt;
  return std::move(misfit->words);
}

std::unique_ptr<RoomLeft> ClusterView::TakeSnapshot(const std::vector<Alike>& starting) {
  return impl_->TakeSnapshot(starting);
}

absl::Status ClusterView::SpellGpuType(v1::JobSpec* spec) { return impl_->SpellGpuType(spec); }

void ClusterView::FillResources(agent::v1::Assignment* run) { impl_->FillResources(run); }

}  // namespace muster::kubernetes
