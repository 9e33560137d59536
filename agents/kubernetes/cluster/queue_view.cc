#include "agents/kubernetes/cluster/queue_view.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "agents/core/steady_time.h"
#include "agents/kubernetes/api/object_watch.h"
#include "agents/kubernetes/objects/kept_objects.h"
#include "agents/kubernetes/objects/kueue.h"
#include "contract/admission.h"
#include "contract/issues.h"
#include "contract/text.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "sync/mutex.h"

namespace muster::kubernetes {
namespace {

// Each API server has this group. One that is starting lists a part of its groups, for a moment.
constexpr char kCommonGroup[] = "batch";
// One message has at most so many names.
constexpr size_t kMaxNamedQueues = 20;

std::string QueuePath(const std::string& version, const std::string& name_space,
                      const std::string& collection) {
  return fmt::format("/apis/{}/{}/namespaces/{}/{}", kKueueGroup, version, Escape(name_space),
                     collection);
}

std::string NamesOf(std::vector<LocalQueue> queues) {
  std::vector<std::string> names;
  for (LocalQueue& queue : queues) names.push_back(std::move(queue.name));
  std::sort(names.begin(), names.end());
  const bool is_cut = names.size() > kMaxNamedQueues;
  if (is_cut) names.resize(kMaxNamedQueues);
  return fmt::format("{}{}", fmt::join(names, ", "), is_cut ? ", ..." : "");
}

// Holds the reasons that Jobs wait, by their uid, because many are asked for again and again.
class WaitsOfJobs final : public ObjectSink {
 public:
  void OnAll(std::vector<Json> objects) override {
    std::unordered_map<std::string, Workload> workloads;
    const MutexLock lock(mutex_);
    for (const Json& object : objects) Put(object, &workloads);
    workloads_ = std::move(workloads);
  }
  void OnChange(Json object) override {
    const MutexLock lock(mutex_);
    Put(object, &workloads_);
  }
  void OnDelete(Json object) override {
    const std::optional<Workload> workload = ParseWorkload(object);
    const MutexLock lock(mutex_);
    if (workload.has_value()) workloads_.erase(workload->job_uid);
  }

  QueueWait Find(const std::string& job_uid) const {
    const MutexLock lock(mutex_);
    const auto found = workloads_.find(job_uid);
    if (found == workloads_.end()) return {};
    return {.words = found->second.words, .is_given_up = found->second.is_given_up};
  }

 private:
  void Put(const Json& object, std::unordered_map<std::string, Workload>* into) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::optional<Workload> workload = ParseWorkload(object);
    if (!workload.has_value()) return;
    if (const auto known = workloads_.find(workload->job_uid); known != workloads_.end())
      KeepRefusals(known->second, &*workload);
    const std::string job_uid = workload->job_uid;
    into->insert_or_assign(job_uid, *std::move(workload));
  }

  mutable Mutex mutex_;
  std::unordered_map<std::string, Workload> workloads_ ABSL_GUARDED_BY(mutex_);  // by the Job's uid
};

}  // namespace

ApiGroups ParseGroups(const Json& apis) {
  ApiGroups groups;
  for (const Json& group : At(apis, "groups"))
    groups[TextAt(group, "name")] = TextAt(group, "preferredVersion/version");
  return groups;
}

absl::Status CheckSchedulers(const v1::JobSpec& spec, const ApiGroups& groups) {
  std::vector<std::string> names;
  for (const auto& [name, version] : groups) names.push_back(name);
  const auto missing = contract::FindMissingScheduler(spec.kubernetes(), names);
  if (!missing.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(missing->message());
}

class QueueView::Space {
 public:
  Space(std::string name_space, std::string version, Api* api, std::function<void()> on_news)
      : name_(std::move(name_space)),
        version_(std::move(version)),
        kept_queues_([](const Json& queue) { return ParseLocalQueue(queue); },
                     {.on_other = std::move(on_news)}),
        queues_({.path = QueuePath(version_, name_, "localqueues")}, api, &kept_queues_),
        workloads_({.path = QueuePath(version_, name_, "workloads"), .trim = TrimWorkload}, api,
                   &waits_) {}

  const std::string& version() const { return version_; }
  bool AwaitQueues(absl::Duration timeout) { return queues_.AwaitFirstAnswer(timeout); }
  // Returns whether all queues are known; only then a queue that is not there is known to be
  // missing.
  bool KnowsQueues() { return queues_.AwaitFirstList(absl::ZeroDuration()); }
  std::vector<LocalQueue> Queues() const { return kept_queues_.All(); }
  bool HasQueue(const std::string& name) const {
    return kept_queues_.HasAny([&](const LocalQueue& one) { return one.name == name; });
  }
  QueueWait WaitOf(const std::string& job_uid) const { return waits_.Find(job_uid); }
  // PERMISSION_DENIED: something of Kueue may not be seen here.
  absl::Status Rights() const {
    for (const ObjectWatch* watch : {&queues_, &workloads_}) {
      if (absl::IsPermissionDenied(watch->state())) return watch->state();
    }
    return absl::OkStatus();
  }

 private:
  const std::string name_;
  const std::string version_;
  KeptObjects<LocalQueue> kept_queues_;
  WaitsOfJobs waits_;
  // After what they tell of changes.
  ObjectWatch queues_;
  ObjectWatch workloads_;
};

QueueView::QueueView(std::vector<std::string> namespaces, Api* api, Clock clock,
                     std::function<void()> on_news)
    : namespaces_(std::move(namespaces)),
      api_(*api),
      clock_(std::move(clock)),
      on_news_(std::move(on_news)) {}
QueueView::~QueueView() = default;

void QueueView::Learn(absl::Duration max_age) {
  const MutexLock one_at_a_time(learning_);
  {
    const MutexLock lock(mutex_);
    const absl::Time now = clock_();
    if (now - learnt_ < max_age) return;
    learnt_ = now;
  }
  const absl::Time end = agents::SteadyNow() + kLearnPatience;
  const absl::StatusOr<ApiAnswer> answer = api_.Call({.path = "/apis", .timeout = kLearnPatience});
  {
    // Callers that have waited meanwhile do not each ask again.
    const MutexLock lock(mutex_);
    learnt_ = clock_();
  }
  if (!answer.ok() || !answer->ok()) return;
  ApiGroups groups = ParseGroups(answer->body);
  // Something else than an API server may answer, too.
  if (!groups.contains(kCommonGroup)) return;
  bool is_news = false;
  groups = Confirmed(std::move(groups), &is_news);
  const auto kueue = groups.find(kKueueGroup);
  std::map<std::string, std::shared_ptr<Space>> spaces;
  for (const std::string& name : namespaces_) {
    if (kueue == groups.end()) break;
    const std::shared_ptr<Space> known = Find(name);
    spaces[name] = known != nullptr && known->version() == kueue->second
                       ? known
                       : std::make_shared<Space>(name, kueue->second, &api_, on_news_);
  }
  for (const auto& [name, space] : spaces)
    space->AwaitQueues(std::max(absl::ZeroDuration(), end - agents::SteadyNow()));
  {
    const MutexLock lock(mutex_);
    groups_ = std::move(groups);
    // Views that are no more end after the lock is released.
    spaces_.swap(spaces);
  }
  if (is_news && on_news_) on_news_();
}

ApiGroups QueueView::Confirmed(ApiGroups answer, bool* is_news) {
  const MutexLock lock(mutex_);
  for (const char* name : {kKueueGroup, kVolcanoGroup, kPodGroupsGroup}) {
    if (answer.contains(name)) {
      absences_.erase(name);
      continue;
    }
    Absence& absence = absences_.try_emplace(name, Absence{.since = learnt_}).first->second;
    const bool was_sure = absence.is_sure;
    absence.is_sure = was_sure || learnt_ - absence.since >= kGroupsAreFresh;
    *is_news = *is_news || absence.is_sure != was_sure;
    if (absence.is_sure || !groups_.has_value()) continue;
    if (const auto known = groups_->find(name); known != groups_->end()) answer.insert(*known);
  }
  return answer;
}

std::shared_ptr<QueueView::Space> QueueView::Find(const std::string& name_space) const {
  const MutexLock lock(mutex_);
  const auto found = spaces_.find(name_space);
  return found == spaces_.end() ? nullptr : found->second;
}

absl::Status QueueView::Check(const v1::JobSpec& spec, const std::string& name_space) {
  const std::string& queue = spec.kubernetes().queue();
  const bool is_asked =
      !queue.empty() || spec.kubernetes().gang() != v1::KUBERNETES_GANG_UNSPECIFIED;
  if (!is_asked) return absl::OkStatus();
  Learn(kGroupsAreFresh);
  std::optional<ApiGroups> groups;
  ApiGroups perhaps;  // with those that may be there although no answer has had them
  {
    const MutexLock lock(mutex_);
    groups = groups_;
    perhaps = groups_.value_or(ApiGroups());
    for (const auto& [name, absence] : absences_) {
      if (!absence.is_sure) perhaps.try_emplace(name);
    }
  }
  if (!groups.has_value()) return absl::OkStatus();
  if (absl::Status good = CheckSchedulers(spec, *groups); !good.ok()) {
    if (!CheckSchedulers(spec, perhaps).ok()) return good;
    return absl::UnavailableError(
        fmt::format("{}; an API server that has just started may not list all that it has yet: it "
                    "is asked once more in {} s",
                    ToStd(good.message()), absl::ToInt64Seconds(kGroupsAreFresh)));
  }
  return queue.empty() ? absl::OkStatus() : CheckQueue(queue, name_space, (*groups)[kKueueGroup]);
}

absl::Status QueueView::CheckQueue(const std::string& queue, const std::string& name_space,
                                   const std::string& version) {
  const std::shared_ptr<Space> space = Find(name_space);
  if (space == nullptr || space->HasQueue(queue)) return absl::OkStatus();
  // It may have been made in this moment.
  const absl::StatusOr<Json> answer =
      api_.Get(QueuePath(version, name_space, "localqueues/" + Escape(queue)), "queue " + queue);
  if (!absl::IsNotFound(answer.status())) return absl::OkStatus();
  std::string others = "which queues it has may not be seen";
  if (space->KnowsQueues()) {
    const std::string names = NamesOf(space->Queues());
    others = names.empty() ? "it has none" : "it has " + names;
  }
  return absl::InvalidArgumentError(contract::NoSuchQueue(queue, name_space, others));
}

void QueueView::AddFacts(v1::KubernetesFacts* facts) const {
  {
    const MutexLock lock(mutex_);
    if (!groups_.has_value()) return;
    v1::NameList& told = *facts->mutable_scheduler_groups();
    for (const char* name : {kKueueGroup, kVolcanoGroup, kPodGroupsGroup}) {
      const auto absence = absences_.find(name);
      const bool may_be = absence != absences_.end() && !absence->second.is_sure;
      if (groups_->contains(name) || may_be) told.add_names(name);
    }
  }
  for (v1::NamespaceFacts& told : *facts->mutable_namespaces()) {
    const std::shared_ptr<Space> space = Find(told.name());
    if (space == nullptr || !space->KnowsQueues()) continue;
    std::set<std::string> names;
    for (const LocalQueue& queue : space->Queues()) names.insert(queue.name);
    told.mutable_queues()->mutable_names()->Assign(names.begin(), names.end());
  }
}

std::string QueueView::QueueOf(const v1::JobSpec& spec, const std::string& name_space) const {
  if (!spec.kubernetes().queue().empty()) return spec.kubernetes().queue();
  const std::shared_ptr<Space> space = Find(name_space);
  return space != nullptr && space->HasQueue(kDefaultQueue) ? kDefaultQueue : "";
}

bool QueueView::MayHaveDefaultQueue(const std::string& name_space) const {
  {
    const MutexLock lock(mutex_);
    if (!groups_.has_value()) return true;
  }
  const std::shared_ptr<Space> space = Find(name_space);
  if (space == nullptr) return false;
  return !space->KnowsQueues() || space->HasQueue(kDefaultQueue);
}

QueueWait QueueView::WaitOf(const JobObject& job) const {
  if (job.queue == kHeldQueue) return {.words = "is about to be put into its queue"};
  const std::shared_ptr<Space> space = Find(job.name.name_space);
  QueueWait wait = space == nullptr ? QueueWait() : space->WaitOf(job.name.uid);
  wait.words = QueueWords(job.queue, wait.words);
  return wait;
}

std::vector<v1::ClusterIssue> QueueView::Issues() const {
  std::vector<v1::ClusterIssue> issues;
  for (const std::string& name : namespaces_) {
    const std::shared_ptr<Space> space = Find(name);
    const absl::Status rights = space == nullptr ? absl::OkStatus() : space->Rights();
    if (rights.ok()) continue;
    issues.push_back(contract::QueuesUnseen(name, std::string(ToStd(rights.message()))));
  }
  return issues;
}

}  // namespace muster::kubernetes
