#include "agents/kubernetes/namespace_runs.h"

#include <utility>

#include "agents/core/steady_time.h"
#include "agents/kubernetes/objects/objects.h"
#include "contract/text.h"
#include "fmt/format.h"
#include "sync/mutex.h"

namespace muster::kubernetes {
namespace {

// An API server that has just started refuses everybody for moments, because it has not read yet
// who may do what.
constexpr absl::Duration kPassingRefusal = absl::Seconds(30);

}  // namespace

NamespaceRuns::NamespaceRuns(std::string name, std::function<void(const PodObject&)> on_pod,
                             RunStore::Clock clock, std::function<void()> wake)
    : name_(std::move(name)), store_(std::move(on_pod), std::move(clock)) {
  store_.SetWaker(std::move(wake));
}

void NamespaceRuns::Watch(Api* api, FileRoom* room) {
  api_ = api;
  jobs_ = room->Listen(name_, store_.jobs());
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
  watch("/apis/batch/v1" + home + "/jobs", selector, "", jobs_.get());
  watch("/api/v1" + home + "/pods", selector, "", store_.pods());
  // Events bear no labels; the others of them say that all is well, and count for nothing.
  watch("/api/v1" + home + "/events", "", "type=Warning", store_.events());
}

void NamespaceRuns::AwaitFirstAnswers(absl::Time deadline) {
  for (const auto& each : watches_) each->AwaitFirstAnswer(deadline - agents::SteadyNow());
}

absl::Status NamespaceRuns::state() const {
  if (watches_.empty()) return absl::UnavailableError("the watches have not begun");
  absl::Status state;
  // Events only explain; without the right to see them runs go on.
  for (size_t i = 0; i < watches_.size() - 1; ++i) state.Update(watches_[i]->state());
  return state;
}

bool NamespaceRuns::Forbid(const std::string& run_key, Access what, absl::Status why) {
  const MutexLock lock(mutex_);
  const bool is_news = !forbidden_.has_value();
  if (what.resource == kJobs) unmade_.insert(run_key);
  forbidden_ = {.what = std::move(what),
                .why = absl::PermissionDeniedError(why.message()),
                .asked = agents::SteadyNow()};
  return is_news;
}

SeenNamespace NamespaceRuns::LookAtNamespace() const {
  SeenNamespace seen{.name = name_};
  JudgeNamespace(api_->Get("/api/v1/namespaces/" + Escape(name_), "namespace " + name_),
                 absl::OkStatus(), &seen);
  return seen;
}

bool NamespaceRuns::IsMissing() const {
  return api_ != nullptr &&
         absl::IsNotFound(api_->Get("/api/v1/namespaces/" + Escape(name_), "namespace").status());
}

absl::Status NamespaceRuns::WhyUnmade() {
  std::string why;
  {
    const MutexLock lock(mutex_);
    if (!forbidden_.has_value()) return absl::OkStatus();
    if (agents::SteadyNow() - forbidden_->told_at < kRightsAreFresh) return forbidden_->told;
    why = std::string(ToStd(forbidden_->why.message()));
  }
  const SeenNamespace seen = LookAtNamespace();
  const absl::Status told = absl::PermissionDeniedError(
      seen.state.empty()
          ? why +
                "; it waits for this right: tell the cluster's operator that the agent's account "
                "lacks it (muster check names all that it needs)"
          : fmt::format("{}; it waits for the namespace: {}",
                        contract::ShutNamespaceSentence(ShutOf(seen)),
                        contract::ShutNamespaceRemedy(ShutOf(seen))));
  const MutexLock lock(mutex_);
  if (forbidden_.has_value()) {
    forbidden_->told = told;
    forbidden_->told_at = agents::SteadyNow();
  }
  return told;
}

bool NamespaceRuns::is_forbidden() const {
  const MutexLock lock(mutex_);
  return forbidden_.has_value();
}

bool NamespaceRuns::IsUnmade(const std::string& run_key) const {
  const MutexLock lock(mutex_);
  return unmade_.contains(run_key);
}

void NamespaceRuns::ForgetUnmade(const std::string& run_key) {
  const MutexLock lock(mutex_);
  unmade_.erase(run_key);
}

absl::Status NamespaceRuns::AskLaunchRights(absl::Duration max_age) {
  Access what;
  {
    const MutexLock lock(mutex_);
    if (!forbidden_.has_value()) return absl::OkStatus();
    if (agents::SteadyNow() - forbidden_->asked < max_age) return forbidden_->why;
    forbidden_->asked = agents::SteadyNow();
    what = forbidden_->what;
  }
  const absl::StatusOr<bool> is_allowed = IsAllowed(what, api_);
  // An account that may do everything may do so also in a namespace that is not there.
  const bool is_open = is_allowed.ok() && *is_allowed && LookAtNamespace().state.empty();
  const MutexLock lock(mutex_);
  if (!forbidden_.has_value()) return absl::OkStatus();
  if (!is_open) return forbidden_->why;
  forbidden_.reset();
  unmade_.clear();
  return absl::OkStatus();
}

bool NamespaceRuns::AreRunsHidden() const {
  for (size_t i = 0; i + 1 < watches_.size(); ++i) {
    const bool lasts = agents::SteadyNow() - watches_[i]->freshness() > kPassingRefusal;
    if (absl::IsPermissionDenied(watches_[i]->state()) && lasts) return true;
  }
  return false;
}

absl::Status NamespaceRuns::AskRights() {
  if (AreRunsHidden()) {
    const absl::Status seen =
        api_->Get("/apis/batch/v1/namespaces/" + Escape(name_) + "/jobs?limit=1",
                  "Jobs of namespace " + name_)
            .status();
    if (absl::IsPermissionDenied(seen)) return seen;
  }
  return AskLaunchRights(absl::ZeroDuration());
}

}  // namespace muster::kubernetes
