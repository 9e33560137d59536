#include "agents/kubernetes/cluster_view.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/time/clock.h"
#include "agents/kubernetes/cluster_identity.h"
#include "agents/kubernetes/inventory.h"
#include "agents/kubernetes/kept_objects.h"
#include "agents/kubernetes/obstacle.h"
#include "contract/text.h"
#include "fmt/format.h"
#include "google/protobuf/util/time_util.h"

namespace muster::kubernetes {
namespace {

using google::protobuf::util::TimeUtil;

// For each of the first lists: a busy server answers within it, and who asks is still there.
constexpr absl::Duration kFirstListTimeout = absl::Seconds(20);
// Pods that have ended take nothing. The server leaves them out, and says when one has.
constexpr char kNotEnded[] = "status.phase!=Succeeded,status.phase!=Failed";

google::protobuf::Timestamp TimestampOf(absl::Time time) {
  return TimeUtil::NanosecondsToTimestamp(absl::ToUnixNanos(time));
}

std::string NamespacePath(const std::string& name_space, const char* collection) {
  return fmt::format("/api/v1/namespaces/{}/{}", name_space, collection);
}

ClusterView::AssignmentPtr RunOf(const v1::JobSpec& spec) {
  auto run = std::make_shared<v1::Assignment>();
  *run->mutable_spec() = spec;
  return run;
}

template <typename Kept>
std::vector<Kept> Together(const std::vector<std::vector<Kept>>& lists) {
  std::vector<Kept> all;
  for (const std::vector<Kept>& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace

class ClusterView::Impl {
 public:
  Impl(const KubernetesConfig& config, Api* api, const std::string& state_dir)
      : config_(config),
        name_space_(config.name_space.empty() ? api->endpoint().name_space : config.name_space),
        api_(*api),
        identity_(state_dir),
        kept_nodes_([this](const Json& node) { return ParseNode(node, config_.gpu_resources); }),
        kept_pods_([this](const Json& pod) -> std::optional<PodUse> {
          if (HasPodEnded(pod)) return std::nullopt;
          return ParsePodUse(pod, config_.gpu_resources);
        }),
        kept_quotas_([](const Json& quota) { return ParseQuota(quota); }),
        kept_ranges_([](const Json& range) { return ParseLimitRange(range); }),
        nodes_({.path = "/api/v1/nodes"}, api, &kept_nodes_),
        quotas_({.path = NamespacePath(name_space_, "resourcequotas")}, api, &kept_quotas_),
        ranges_({.path = NamespacePath(name_space_, "limitranges")}, api, &kept_ranges_),
        pods_(WatchPods("/api/v1/pods")) {}

  absl::StatusOr<v1::Inventory> Inventory() {
    const absl::StatusOr<std::string> version = ReadVersion(&api_);
    if (!version.ok()) return version.status();
    const absl::StatusOr<std::string> identity = identity_.Learn(&api_);
    if (!identity.ok()) return identity.status();
    const Seen seen = AwaitAndLook();
    v1::Inventory inventory;
    inventory.set_identity(*identity);
    inventory.set_scheduler_version("kubernetes " + *version);
    *inventory.mutable_observed_at() = TimestampOf(absl::Now());
    inventory.set_images(config_.default_image.empty() ? v1::IMAGE_SUPPORT_REQUIRED
                                                       : v1::IMAGE_SUPPORT_OPTIONAL);
    *inventory.add_pools() = PoolOf(seen, config_);
    for (std::string& warning : WarningsOf(seen, config_))
      inventory.add_warnings(std::move(warning));
    if (api_.endpoint().skips_tls_verify) {
      inventory.add_warnings(
          "insecure-skip-tls-verify is set: anybody between here and the API server can read and "
          "change everything; set certificate-authority-data in the kubeconfig instead");
    }
    return inventory;
  }

  std::string KnownIdentity() const { return identity_.known(); }

  absl::StatusOr<v1::ClusterDetails> Describe() {
    const Seen seen = AwaitAndLook();
    if (!seen.knows_nodes && !absl::IsPermissionDenied(seen.nodes_problem))
      return absl::UnavailableError(seen.nodes_problem.message());
    v1::ClusterDetails details = DetailsOf(seen, config_);
    *details.mutable_observed_at() = TimestampOf(absl::Now());
    return details;
  }

  // Nothing: it fits now, or what would tell is not known.
  std::optional<Misfit> Judge(const v1::Assignment& run, bool has_objects,
                              const std::vector<AssignmentPtr>& before) {
    RunNeed need = NeedOf(run, config_);
    need.has_objects = has_objects;
    Seen seen = Look();
    for (const AssignmentPtr& other : before) LeaveRoom(*other, config_, &seen);
    return FindObstacle(need, seen);
  }

  std::string Spelled(const std::string& type) const {
    return kubernetes::SpellGpuType(type, kept_nodes_.All(), config_);
  }

 private:
  std::shared_ptr<ObjectWatch> WatchPods(const std::string& path) {
    return std::make_shared<ObjectWatch>(
        ObjectWatch::Settings{
            .path = path, .selector = "", .field_selector = kNotEnded, .trim = TrimPod},
        &api_, &kept_pods_);
  }

  Seen AwaitAndLook() {
    nodes_.AwaitFirstAnswer(kFirstListTimeout);
    AwaitPods();
    // A cluster whose pods are all hidden may show those of one namespace.
    if (Narrow()) AwaitPods();
    quotas_.AwaitFirstAnswer(kFirstListTimeout);
    ranges_.AwaitFirstAnswer(kFirstListTimeout);
    return Look();
  }

  void AwaitPods() {
    std::shared_ptr<ObjectWatch> pods;
    {
      const std::lock_guard lock(mutex_);
      pods = pods_;
    }
    pods->AwaitFirstAnswer(kFirstListTimeout);
  }

  // Whether the watch of all pods was refused just now, and one of the namespace took its place.
  bool Narrow() {
    const std::lock_guard lock(mutex_);
    const absl::Status state = pods_->state();
    if (scope_ != PodScope::kCluster || !absl::IsPermissionDenied(state)) return false;
    pods_problem_ = state;
    scope_ = PodScope::kNamespace;
    pods_.reset();
    pods_ = WatchPods(NamespacePath(name_space_, "pods"));
    return true;
  }

  Seen Look() {
    Seen seen;
    seen.name_space = name_space_;
    seen.knows_nodes = nodes_.AwaitFirstList(absl::ZeroDuration());
    seen.nodes_problem = nodes_.state();
    std::vector<NodeObject> nodes = kept_nodes_.All();
    std::sort(nodes.begin(), nodes.end(),
              [](const NodeObject& a, const NodeObject& b) { return a.name < b.name; });
    {
      const std::lock_guard lock(mutex_);
      const bool has_listed = pods_->AwaitFirstList(absl::ZeroDuration());
      seen.pod_scope = has_listed ? scope_ : PodScope::kNone;
      seen.pods_problem = has_listed ? pods_problem_ : pods_->state();
    }
    seen.pods = kept_pods_.All();
    seen.rooms = RoomOf(std::move(nodes), seen.pods);
    seen.quotas = Together(kept_quotas_.All());
    seen.ranges = Together(kept_ranges_.All());
    return seen;
  }

  const KubernetesConfig config_;
  const std::string name_space_;
  Api& api_;
  ClusterIdentity identity_;
  KeptObjects<NodeObject> kept_nodes_;
  KeptObjects<PodUse> kept_pods_;
  KeptObjects<std::vector<QuotaLine>> kept_quotas_;
  KeptObjects<std::vector<RangeLine>> kept_ranges_;
  // After what they tell of changes.
  ObjectWatch nodes_;
  ObjectWatch quotas_;
  ObjectWatch ranges_;
  std::mutex mutex_;
  PodScope scope_ = PodScope::kCluster;  // guarded by mutex_
  absl::Status pods_problem_;            // guarded by mutex_
  std::shared_ptr<ObjectWatch> pods_;    // guarded by mutex_
};

ClusterView::ClusterView(const KubernetesConfig& config, Api* api, const std::string& state_dir)
    : impl_(std::make_unique<Impl>(config, api, state_dir)) {}
ClusterView::~ClusterView() = default;

absl::StatusOr<v1::Inventory> ClusterView::Inventory() { return impl_->Inventory(); }
std::string ClusterView::KnownIdentity() const { return impl_->KnownIdentity(); }
absl::StatusOr<v1::ClusterDetails> ClusterView::Describe() { return impl_->Describe(); }

std::optional<std::string> ClusterView::Refusal(const v1::Assignment& run) {
  std::optional<Misfit> misfit = impl_->Judge(run, /*has_objects=*/false, {});
  if (!misfit.has_value() || !misfit->is_final) return std::nullopt;
  return std::move(misfit->words);
}

std::optional<std::string> ClusterView::WaitsFor(const v1::Assignment& run,
                                                 const std::vector<AssignmentPtr>& before) {
  std::optional<Misfit> misfit = impl_->Judge(run, /*has_objects=*/true, before);
  if (!misfit.has_value()) return std::nullopt;
  return std::move(misfit->words);
}

std::optional<std::string> ClusterView::Refusal(const v1::JobSpec& spec) {
  return Refusal(*RunOf(spec));
}

std::optional<std::string> ClusterView::WaitsFor(const v1::JobSpec& spec,
                                                 const std::vector<v1::JobSpec>& before) {
  std::vector<AssignmentPtr> runs;
  runs.reserve(before.size());
  for (const v1::JobSpec& other : before) runs.push_back(RunOf(other));
  return WaitsFor(*RunOf(spec), runs);
}

void ClusterView::SpellGpuType(v1::JobSpec* spec) {
  for (v1::GpuRequest& gpus : *spec->mutable_resources()->mutable_gpus()) {
    if (!gpus.type().empty()) gpus.set_type(impl_->Spelled(gpus.type()));
  }
}

}  // namespace muster::kubernetes
