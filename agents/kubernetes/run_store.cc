#include "agents/kubernetes/run_store.h"

#include <algorithm>
#include <utility>

#include "contract/run_key.h"
#include "sync/mutex.h"

namespace muster::kubernetes {
namespace {

void ParseInto(const Json& object, JobObject* job) { *job = ParseJob(object); }
void ParseInto(const Json& object, PodObject* pod) { *pod = ParsePod(object); }
void ParseInto(const Json& object, EventObject* event) { *event = ParseEvent(object); }

// Once a pod that is being deleted has ended, its node asks for its deletion anew: what counts is
// when that was asked for first.
void Keep(PodObject pod, absl::Time now, std::map<std::string, PodObject>* pods) {
  PodObject& known = (*pods)[pod.name.uid];
  if (known.deletion_time.has_value() && pod.deletion_time.has_value())
    pod.deletion_time = std::min(*known.deletion_time, *pod.deletion_time);
  if (IsKeptWaiting(pod)) pod.waiting_since = known.waiting_since.value_or(now);
  known = std::move(pod);
}

// Keeps the time at which the launch of a Job was first seen to be complete.
void NoteLaunch(const std::optional<JobObject>& known, absl::Time now, JobObject* job) {
  if (!job->is_launch_complete) return;
  const bool is_known = known.has_value() && known->name.uid == job->name.uid;
  job->launch_complete_since =
      (is_known ? known->launch_complete_since : std::nullopt).value_or(now);
}

// Finds the Event that tells least: the oldest, except the first of each reason, which says since
// when. If only such are left, it is the oldest.
std::vector<EventObject>::iterator FindNeedless(std::vector<EventObject>& events) {
  const auto needless = std::find_if(events.begin(), events.end(), [&](const EventObject& event) {
    return std::any_of(events.begin(), events.end(), [&](const EventObject& other) {
      return other.reason == event.reason && other.first_seen < event.first_seen;
    });
  });
  return needless == events.end() ? events.begin() : needless;
}

// Returns whether this tells of the same object at an earlier time: answers and watches overtake
// each other. Versions rise; those of one kind of objects are numbers of any length. Source:
// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions.
bool IsBehind(const ObjectName& object, const ObjectName& known) {
  if (object.uid != known.uid) return false;
  const std::string& version = object.resource_version;
  const std::string& than = known.resource_version;
  if (version.size() != than.size()) return version.size() < than.size();
  return version < than;
}

}  // namespace

std::string RunKeyOfName(const std::string& name) {
  // The name is "k7m2-42-1-0-x8f2p", and the key its first three parts.
  size_t end = 0;
  for (int dashes = 0; end < name.size(); ++end) {
    if (name[end] == '-' && ++dashes == 3) break;
  }
  std::string key = name.substr(0, end);
  return contract::RunKey::Parse(key).ok() ? key : std::string();
}

// Parses what a watch brings, outside of the lock, and hands it on.
template <typename Part>
class RunStore::Sink final : public ObjectSink {
 public:
  explicit Sink(RunStore* store) : store_(*store) {}

  void OnAll(std::vector<Json> objects) override {
    std::vector<Part> parts(objects.size());
    for (size_t i = 0; i < objects.size(); ++i) {
      ParseInto(objects[i], &parts[i]);
      objects[i] = nullptr;  // a whole list as JSON is many times as large
    }
    store_.TakeAll(std::move(parts));
    store_.Wake();
  }
  void OnChange(Json object) override {
    Part part;
    ParseInto(object, &part);
    store_.Take(std::move(part));
    store_.Wake();
  }
  void OnDelete(Json object) override {
    Part part;
    ParseInto(object, &part);
    store_.TakeDeleted(std::move(part));
    store_.Wake();
  }

 private:
  RunStore& store_;
};

RunStore::RunStore(std::function<void(const PodObject&)> on_pod, Clock clock)
    : on_pod_(std::move(on_pod)),
      clock_(std::move(clock)),
      jobs_(std::make_unique<Sink<JobObject>>(this)),
      pods_(std::make_unique<Sink<PodObject>>(this)),
      events_(std::make_unique<Sink<EventObject>>(this)) {}

RunStore::~RunStore() = default;

ObjectSink* RunStore::jobs() { return jobs_.get(); }
ObjectSink* RunStore::pods() { return pods_.get(); }
ObjectSink* RunStore::events() { return events_.get(); }

// ---- Jobs

void RunStore::TakeAll(std::vector<JobObject> jobs) {
  const MutexLock lock(mutex_);
  // Older news counts, too: a server that was restored from a backup has gone back, and the watch
  // repeats an answer that came while the list was made.
  std::set<std::string> listed;
  for (JobObject& job : jobs) {
    listed.insert(job.name.run_key);
    SetJobLocked(std::move(job));
  }
  std::vector<std::string> unlisted;
  for (auto& [run_key, entry] : entries_) {
    if (!entry.job.has_value() || listed.contains(run_key)) continue;
    entry.missing_job = std::exchange(entry.job, std::nullopt);
    NewsLocked(run_key, entry);
    unlisted.push_back(run_key);
  }
  for (const std::string& run_key : unlisted) DropIfEmptyLocked(run_key);
}

void RunStore::Take(JobObject job) {
  const MutexLock lock(mutex_);
  const Entry* entry = FindLocked(job.name.run_key);
  // The watch is behind an answer of the server's.
  if (entry != nullptr && entry->job.has_value() && IsBehind(job.name, entry->job->name)) return;
  SetJobLocked(std::move(job));
}

void RunStore::TakeDeleted(JobObject job) {
  const MutexLock lock(mutex_);
  const std::string run_key = job.name.run_key;
  Entry* entry = FindLocked(run_key);
  // An older Job of the name than the one that is known now.
  if (entry == nullptr || (entry->job.has_value() && entry->job->name.uid != job.name.uid)) return;
  entry->job.reset();
  entry->missing_job.reset();
  entry->deleted_job = std::move(job);
  NewsLocked(run_key, *entry);
  DropIfEmptyLocked(run_key);
}

void RunStore::SetJobLocked(JobObject job) {
  if (job.name.run_key.empty()) return;
  const std::string run_key = job.name.run_key;
  Entry& entry = entries_[run_key];
  entry.deleted_job.reset();
  entry.missing_job.reset();
  NoteLaunch(entry.job, clock_(), &job);
  entry.job = std::move(job);
  NewsLocked(run_key, entry);
}

void RunStore::Put(JobObject job) {
  const MutexLock lock(mutex_);
  if (const Entry* entry = FindLocked(job.name.run_key)) {
    const bool is_gone =
        entry->deleted_job.has_value() && entry->deleted_job->name.uid == job.name.uid;
    if (is_gone || (entry->job.has_value() && IsBehind(job.name, entry->job->name))) return;
  }
  SetJobLocked(std::move(job));
}

void RunStore::PutPods(std::vector<PodObject> pods) {
  {
    const MutexLock lock(mutex_);
    std::erase_if(pods, [this](const PodObject& pod) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return FindLocked(pod.name.run_key) == nullptr || IsBehindLocked(pod) || !SetPodLocked(pod);
    });
  }
  for (const PodObject& pod : pods) on_pod_(pod);
}

void RunStore::PutAbsent(const std::string& run_key) {
  const MutexLock lock(mutex_);
  Entry* entry = FindLocked(run_key);
  if (entry == nullptr) return;
  if (entry->missing_job.has_value())
    entry->deleted_job = std::exchange(entry->missing_job, std::nullopt);
}

// ---- pods

void RunStore::TakeAll(std::vector<PodObject> pods) {
  std::set<std::string> listed;
  for (const PodObject& pod : pods) listed.insert(pod.name.uid);
  {
    const MutexLock lock(mutex_);
    std::vector<std::string> run_keys;
    for (auto& [run_key, entry] : entries_) {
      // Pods that had ended tell how; pods that had not are gone, and the Job tells what that
      // means.
      const bool wanted = entry.wanted;
      std::erase_if(entry.pods, [&](const auto& known) {
        const bool tells = wanted && known.second.HasEnded();
        return !tells && !listed.contains(known.first);
      });
      NewsLocked(run_key, entry);
      run_keys.push_back(run_key);
    }
    for (const std::string& run_key : run_keys) DropIfEmptyLocked(run_key);
    std::erase_if(pods, [this](const PodObject& pod)
                            ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !SetPodLocked(pod); });
  }
  for (const PodObject& pod : pods) on_pod_(pod);
}

void RunStore::Take(PodObject pod) {
  {
    const MutexLock lock(mutex_);
    if (IsBehindLocked(pod) || !SetPodLocked(pod)) return;
  }
  on_pod_(pod);
}

bool RunStore::IsBehindLocked(const PodObject& pod) {
  const Entry* entry = FindLocked(pod.name.run_key);
  if (entry == nullptr) return false;
  const auto known = entry->pods.find(pod.name.uid);
  return known != entry->pods.end() && IsBehind(pod.name, known->second.name);
}

bool RunStore::SetPodLocked(const PodObject& pod) {
  const std::string& run_key = pod.name.run_key;
  if (run_key.empty()) return false;
  Entry& entry = entries_[run_key];
  Keep(pod, clock_(), &entry.pods);
  NewsLocked(run_key, entry);
  return entry.wanted;
}

void RunStore::TakeDeleted(PodObject pod) {
  const std::string run_key = pod.name.run_key;
  bool wanted = false;
  {
    const MutexLock lock(mutex_);
    Entry* entry = FindLocked(run_key);
    if (entry == nullptr) return;
    wanted = entry->wanted;
    if (pod.HasEnded() && wanted) {
      Keep(pod, clock_(), &entry->pods);
    } else {
      entry->pods.erase(pod.name.uid);
    }
    NewsLocked(run_key, *entry);
    DropIfEmptyLocked(run_key);
  }
  if (!wanted) return;
  pod.is_gone = true;
  on_pod_(pod);
}

// ---- Events

void RunStore::TakeAll(std::vector<EventObject> events) {
  for (EventObject& event : events) Take(std::move(event));
}

void RunStore::Take(EventObject event) {
  if (!event.is_warning) return;
  const std::string run_key = RunKeyOfName(event.object);
  const MutexLock lock(mutex_);
  Entry* entry = FindLocked(run_key);
  if (entry == nullptr) return;
  std::vector<EventObject>& events = entry->events;
  std::erase_if(events, [&](const EventObject& known) { return known.uid == event.uid; });
  if (events.size() >= kMaxEventsOfRun) events.erase(FindNeedless(events));
  events.push_back(std::move(event));
  NewsLocked(run_key, *entry);
}

// ---- what the backend asks

void RunStore::Want(const std::string& run_key) {
  const MutexLock lock(mutex_);
  Entry& entry = entries_[run_key];
  if (std::exchange(entry.wanted, true)) return;
  entry.was_let_go = false;
  news_.insert(run_key);
}

std::optional<Leftover> RunStore::Forget(const std::string& run_key) {
  const MutexLock lock(mutex_);
  news_.erase(run_key);
  Entry* entry = FindLocked(run_key);
  if (entry == nullptr) return std::nullopt;
  entry->wanted = false;
  entry->was_let_go = true;
  entry->deleted_job.reset();
  entry->missing_job.reset();
  entry->pods.clear();
  entry->events.clear();
  std::optional<Leftover> left;
  if (entry->job.has_value())
    left = Leftover{*entry->job, CleanUpOf(*entry->job, /*was_let_go=*/true, clock_())};
  DropIfEmptyLocked(run_key);
  return left;
}

RunFacts RunStore::Facts(const std::string& run_key) const {
  const MutexLock lock(mutex_);
  RunFacts facts;
  facts.run_key = run_key;
  const auto found = entries_.find(run_key);
  if (found == entries_.end()) return facts;
  const Entry& entry = found->second;
  facts.job = entry.job;
  facts.deleted_job = entry.deleted_job;
  for (const auto& [uid, pod] : entry.pods) facts.pods.push_back(pod);
  facts.events = entry.events;
  return facts;
}

std::optional<JobObject> RunStore::FindJob(const std::string& run_key) const {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(run_key);
  return found == entries_.end() ? std::nullopt : found->second.job;
}

std::vector<Leftover> RunStore::FindLeftovers(absl::Time now) const {
  std::vector<Leftover> leftovers;
  const MutexLock lock(mutex_);
  for (const auto& [run_key, entry] : entries_) {
    if (entry.wanted || !entry.job.has_value()) continue;
    const CleanUp due = CleanUpOf(*entry.job, entry.was_let_go, now);
    if (due != CleanUp::kNothing) leftovers.push_back({*entry.job, due});
  }
  return leftovers;
}

std::set<std::string> RunStore::TakeNews() {
  const MutexLock lock(mutex_);
  return std::exchange(news_, {});
}

void RunStore::MarkNews(const std::string& run_key) {
  {
    const MutexLock lock(mutex_);
    if (const Entry* entry = FindLocked(run_key)) NewsLocked(run_key, *entry);
  }
  Wake();
}

void RunStore::SetWaker(std::function<void()> wake) {
  const MutexLock lock(mutex_);
  wake_ = std::move(wake);
}

RunStore::Entry* RunStore::FindLocked(const std::string& run_key) {
  const auto found = entries_.find(run_key);
  return found == entries_.end() ? nullptr : &found->second;
}

void RunStore::NewsLocked(const std::string& run_key, const Entry& entry) {
  if (!entry.wanted) return;
  news_.insert(run_key);
  wake_due_ = true;
}

void RunStore::DropIfEmptyLocked(const std::string& run_key) {
  const auto found = entries_.find(run_key);
  if (found == entries_.end() || found->second.wanted || found->second.job.has_value()) return;
  if (found->second.pods.empty()) entries_.erase(found);
}

void RunStore::Wake() {
  std::function<void()> wake;
  {
    const MutexLock lock(mutex_);
    if (!std::exchange(wake_due_, false)) return;
    wake = wake_;
  }
  if (wake) wake();
}

}  // namespace muster::kubernetes
