#include "agents/kubernetes/cluster/namespace_view.h"

#include <optional>
#include <utility>

#include "daemon/log.h"
#include "fmt/format.h"
#include "sync/mutex.h"

namespace muster::kubernetes {
namespace {

// Pods that have ended take nothing. The server leaves them out, and says when one has.
constexpr char kNotEnded[] = "status.phase!=Succeeded,status.phase!=Failed";

std::string PathOf(const std::string& name_space) {
  return "/api/v1/namespaces/" + Escape(name_space);
}

template <typename Kept>
std::vector<Kept> Together(const std::vector<std::vector<Kept>>& lists) {
  std::vector<Kept> all;
  for (const std::vector<Kept>& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

void LogChange(const SeenNamespace& before, const SeenNamespace& now) {
  if (now.state == before.state) return;
  if (now.state.empty()) {
    LogEvent(spdlog::level::info, "namespace_up", {{"namespace", now.name}});
  } else {
    LogEvent(spdlog::level::warn, "namespace_down",
             {{"namespace", now.name}, {"state", now.state}, {"error", now.problem}});
  }
}

}  // namespace

KeptPods::Parse PodParser(const std::vector<std::string>& gpu_resources) {
  return [&gpu_resources](const Json& pod) -> std::optional<PodUse> {
    if (HasPodEnded(pod)) return std::nullopt;
    return ParsePodUse(pod, gpu_resources);
  };
}

std::unique_ptr<ObjectWatch> WatchPods(const std::string& path, Api* api, KeptPods* sink,
                                       std::function<void()> on_recovery) {
  return std::make_unique<ObjectWatch>(ObjectWatch::Settings{.path = path,
                                                             .selector = "",
                                                             .field_selector = kNotEnded,
                                                             .trim = TrimPod,
                                                             .on_recovery = std::move(on_recovery)},
                                       api, sink);
}

NamespaceView::NamespaceView(std::string name, const std::vector<std::string>& gpu_resources,
                             Api* api, OnPods on_pods, std::function<void()> on_recovery)
    : name_(std::move(name)),
      api_(*api),
      on_recovery_(std::move(on_recovery)),
      kept_pods_(PodParser(gpu_resources), {.on_moves = std::move(on_pods)}),
      kept_quotas_([](const Json& quota) { return ParseQuota(quota); }, NewsOf<QuotaLine>()),
      kept_ranges_([](const Json& range) { return ParseLimitRange(range); }, NewsOf<RangeLine>()),
      known_{.name = name_},
      quotas_({.path = PathOf(name_) + "/resourcequotas", .on_recovery = on_recovery_}, api,
              &kept_quotas_),
      ranges_({.path = PathOf(name_) + "/limitranges", .on_recovery = on_recovery_}, api,
              &kept_ranges_) {}

void NamespaceView::Hurry() {
  quotas_.Hurry();
  ranges_.Hurry();
  if (ObjectWatch* pods = this->pods()) pods->Hurry();
}

ObjectWatch* NamespaceView::pods() const {
  const MutexLock lock(mutex_);
  return pods_.get();
}

void NamespaceView::WatchItsPods() {
  const MutexLock lock(mutex_);
  if (pods_ == nullptr)
    pods_ = WatchPods(PathOf(name_) + "/pods", &api_, &kept_pods_, on_recovery_);
}

void NamespaceView::Await(absl::Duration timeout) {
  quotas_.AwaitFirstAnswer(timeout);
  ranges_.AwaitFirstAnswer(timeout);
  if (ObjectWatch* pods = this->pods()) pods->AwaitFirstAnswer(timeout);
}

void NamespaceView::Judge(const absl::Status& runs) {
  SeenNamespace known{.name = name_};
  JudgeNamespace(api_.Get(PathOf(name_), "namespace " + name_), runs, &known);
  const MutexLock lock(mutex_);
  LogChange(known_, known);
  known_ = std::move(known);
}

SeenNamespace NamespaceView::Look() const {
  SeenNamespace seen;
  {
    const MutexLock lock(mutex_);
    seen = known_;
  }
  seen.quotas = Together(kept_quotas_.All());
  seen.ranges = Together(kept_ranges_.All());
  return seen;
}

absl::Status NamespaceView::pods_state() const {
  ObjectWatch* pods = this->pods();
  if (pods == nullptr) return absl::UnavailableError("they are not watched yet");
  return pods->AwaitFirstList(absl::ZeroDuration()) ? absl::OkStatus() : pods->state();
}

}  // namespace muster::kubernetes
