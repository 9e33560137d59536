#include "agents/kubernetes/namespace_runs.h"

#include <utility>

#include "absl/time/clock.h"
#include "agents/kubernetes/objects.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

// An API server that has just started refuses everybody for moments, because it has not read yet
// who may do what.
constexpr absl::Duration kPassingRefusal = absl::Seconds(30);

}  // namespace

NamespaceRuns::NamespaceRuns(std::string name, std::function<void(const PodObject&)> on_pod,
                             std::function<void()> wake)
    : name_(std::move(name)), store_(std::move(on_pod)) {
  store_.SetWaker(std::move(wake));
}

void NamespaceRuns::Watch(Api* api) {
  const std::string selector = fmt::format("{}={}", kManagedByLabel, kManagedByMuster);
  const std::string home = "/namespaces/" + Escape(name_);
  const auto watch = [&](std::string path, std::string labels, std::string fields,
                         ObjectSink* sink) {
    watches_.push_back(
        std::make_unique<ObjectWatch>(ObjectWatch::Settings{.path = std::move(path),
                                                            .selector = std::move(labels),
                                                            .field_selector = std::move(fields),
                                                            .trim = TrimObject},
                                      api, sink));
  };
  watch("/apis/batch/v1" + home + "/jobs", selector, "", store_.jobs());
  watch("/api/v1" + home + "/pods", selector, "", store_.pods());
  // Events bear no labels; the others of them say that all is well, and count for nothing.
  watch("/api/v1" + home + "/events", "", "type=Warning", store_.events());
}

void NamespaceRuns::AwaitFirstAnswers(absl::Time deadline) {
  for (const auto& each : watches_) each->AwaitFirstAnswer(deadline - absl::Now());
}

absl::Status NamespaceRuns::state() const {
  if (watches_.empty()) return absl::UnavailableError("the watches have not begun");
  absl::Status state;
  // Events only explain; without the right to see them runs go on.
  for (size_t i = 0; i < watches_.size() - 1; ++i) state.Update(watches_[i]->state());
  return state;
}

absl::Status NamespaceRuns::rights() const {
  for (size_t i = 0; i + 1 < watches_.size(); ++i) {
    const absl::Status state = watches_[i]->state();
    const bool lasts = absl::Now() - watches_[i]->freshness() > kPassingRefusal;
    if (absl::IsPermissionDenied(state) && lasts) return state;
  }
  return absl::OkStatus();
}

}  // namespace muster::kubernetes
