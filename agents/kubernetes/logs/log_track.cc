#include "agents/kubernetes/logs/log_track.h"

#include <algorithm>

#include "agents/core/steady_time.h"
#include "fmt/format.h"
#include "sync/mutex.h"

namespace muster::kubernetes {
namespace {

// After a start all pods come in one list; until then nothing is taken for gone.
constexpr absl::Duration kPatience = absl::Seconds(5);
// The node's clock and this one may differ so much.
constexpr absl::Duration kClockSlack = absl::Seconds(2);
// Times that a log must be without what it had, before that is believed.
constexpr int kMaxUnfound = 3;
constexpr size_t kMaxReasonBytes = 1000;

bool HasStarted(const ContainerObject& container) {
  if (container.state == ContainerState::kRunning) return true;
  // One that could not be started has ended in 1970.
  return container.state == ContainerState::kTerminated && container.started.has_value() &&
         *container.started > absl::UnixEpoch();
}

}  // namespace

std::vector<const ContainerObject*> ContainersToRead(const PodObject& pod) {
  const auto main =
      std::find_if(pod.containers.begin(), pod.containers.end(),
                   [](const ContainerObject& c) { return !c.is_init && c.name == "main"; });
  const bool has_main = main != pod.containers.end() && HasStarted(*main);
  std::vector<const ContainerObject*> read;
  for (const ContainerObject& container : pod.containers) {
    const bool is_sidecar = has_main && container.state == ContainerState::kRunning;
    if (container.is_init && HasStarted(container) && !is_sidecar) read.push_back(&container);
  }
  if (has_main) read.push_back(&*main);
  return read;
}

LogStep StepAfter(const LogReadResult& result, bool was_last, const LogFollowerOptions& options,
                  LogSourceState* source) {
  if (!result.disk.ok()) return LogStep::kLater;
  if (result.cannot_split()) return LogStep::kReadTogether;
  if (result.is_gone()) {
    // A node that is killed ends its answers as if they were whole, but before the end of the
    // container, or without having told that.
    if (source->finished.has_value() && source->whole >= *source->finished - kClockSlack)
      return LogStep::kFinish;
    // Its end may still be on the way.
    return ++source->refusals < kMaxUnfound ? LogStep::kLater : LogStep::kGiveUp;
  }
  if (result.has_news) source->refusals = 0;
  if (result.is_whole()) {
    // The server ends an answer that its node has cut as one that is whole: only one that brings
    // nothing new shows that there is no more.
    if (was_last) return result.has_news ? LogStep::kAgain : LogStep::kFinish;
    source->whole = agents::SteadyNow();
    return source->ended.has_value() ? LogStep::kAgain : LogStep::kLater;
  }
  if (result.has_news) source->whole = absl::InfinitePast();
  if (absl::IsCancelled(result.connection)) return LogStep::kAgain;
  const int status = result.refusal.status;
  // A server that does not answer, knows us not, or is busy, has refused nothing.
  if (!result.connection.ok() || status == 401 || status == 429) return LogStep::kLater;
  ++source->refusals;
  const bool is_unfound = status == 200 && result.words.empty();
  const int most = is_unfound ? std::min(kMaxUnfound, options.max_refusals) : options.max_refusals;
  return source->ended.has_value() && source->refusals >= most ? LogStep::kGiveUp : LogStep::kLater;
}

LogSourceState* LogTrack::Find(const std::string& key) {
  for (LogSourceState& source : sources) {
    if (source.target.key() == key) return &source;
  }
  return nullptr;
}

bool LogTrack::Name(const PodObject& pod) {
  bool is_new = false;
  for (const ContainerObject* container : ContainersToRead(pod)) {
    const LogTarget target{.name_space = pod.name.name_space,
                           .pod = pod.name.name,
                           .pod_uid = pod.name.uid,
                           .container = container->name};
    LogSourceState* source = Find(target.key());
    if (source == nullptr) {
      source = &sources.emplace_back();
      source->target = target;
      is_new = true;
      due = std::min(due, agents::SteadyNow());
    }
  }
  return NoteEnds(pod) || is_new;
}

// Looks at all containers that are being read: a node that has lost one tells neither its start nor
// its end.
bool LogTrack::NoteEnds(const PodObject& pod) {
  bool is_new = false;
  for (LogSourceState& source : sources) {
    if (source.target.pod_uid != pod.name.uid) continue;
    const auto container =
        std::find_if(pod.containers.begin(), pod.containers.end(),
                     [&](const ContainerObject& c) { return c.name == source.target.container; });
    const bool has_terminated =
        container != pod.containers.end() && container->state == ContainerState::kTerminated;
    // A node that does not know when does not know the end either: it has lost the container.
    if (has_terminated && container->finished.has_value()) source.finished = container->finished;
    if ((!has_terminated && !pod.HasEnded()) || source.ended.has_value()) continue;
    is_new = true;
    source.ended = agents::SteadyNow();
    if (&source == &sources.front()) due = agents::SteadyNow();
  }
  return is_new;
}

LogTrack::Next LogTrack::Arrange(absl::Time now) {
  const MutexLock lock(file->mutex);
  if (!has_loaded) {
    file->spool.Load();
    has_loaded = true;
    if (now < absl::InfiniteFuture()) patience = now + kPatience;
  }
  for (auto source = sources.begin(); source != sources.end();) {
    source = file->spool.HasFinished(source->target.key()) ? sources.erase(source) : source + 1;
  }
  const std::string& current = file->spool.source();
  if (current.empty()) return sources.empty() ? Next::kNothing : Next::kRead;
  const auto found =
      std::find_if(sources.begin(), sources.end(),
                   [&](const LogSourceState& source) { return source.target.key() == current; });
  if (found == sources.end()) {
    if (now >= patience) return Next::kGiveUp;
    due = patience;
    return Next::kNothing;
  }
  std::rotate(sources.begin(), found, found + 1);
  return Next::kRead;
}

absl::Status LogTrack::Drop() {
  sources.clear();
  trouble = absl::OkStatus();
  const MutexLock lock(file->mutex);
  return file->spool.source().empty() ? absl::OkStatus() : file->spool.Finish();
}

absl::Status LogTrack::GiveUp(const std::string& why) {
  const MutexLock lock(file->mutex);
  std::string reason = why.substr(0, kMaxReasonBytes);
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  const std::string& source = file->spool.source();
  absl::Status said =
      file->spool.Say(fmt::format("muster: the rest of the output of {} is missing: {}\n",
                                  source.substr(source.find('/') + 1), reason));
  return said.ok() ? file->spool.Finish() : said;
}

}  // namespace muster::kubernetes
