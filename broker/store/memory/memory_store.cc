#include "broker/store/memory/memory_store.h"

#include <algorithm>
#include <set>
#include <utility>

#include "broker/core/rerun_id.h"
#include "broker/core/timestamps.h"
#include "broker/store/count_groups.h"
#include "broker/store/errors.h"
#include "broker/store/job_past.h"
#include "broker/store/job_view.h"
#include "broker/store/list_limits.h"
#include "broker/store/page_token.h"
#include "contract/launch_refusals.h"
#include "contract/spec_mask.h"
#include "contract/states.h"
#include "sync/mutex.h"

namespace muster::store {
namespace {

bool HasEnded(const v1::Job& job) { return contract::IsTerminal(job.state()); }

}  // namespace

MemoryStore::MemoryStore(std::string instance, absl::Duration request_memory)
    : instance_(std::move(instance)), request_memory_(request_memory) {}

absl::StatusOr<core::Restored> MemoryStore::Restore(absl::Time now) {
  const MutexLock lock(mutex_);
  core::Restored out;
  out.instance = instance_;
  out.broker_epoch = broker_epoch_;
  out.next_job_id = last_job_ + 1;
  out.next_sequence = last_sequence_ + 1;
  for (const auto& [name, cluster] : clusters_) out.clusters.push_back(cluster);
  for (const auto& [key, use] : uses_) out.uses.push_back(use);
  core::RequirementsList requirements;
  std::map<std::string, uint32_t> users;
  for (const auto& [id, record] : jobs_) {
    const v1::Job& job = record.job;
    if (!HasEnded(job)) {
      core::LiveJob& live = out.jobs.emplace_back();
      live.id = id;
      live.create_time = core::ToTime(job.create_time());
      live.requirements = requirements.Add(core::RequirementsOf(*record.spec));
      const auto [user, is_new] =
          users.emplace(job.user(), static_cast<uint32_t>(out.users.size()));
      if (is_new) out.users.push_back(job.user());
      live.user = user->second;
      live.priority = job.priority();
      live.state = job.state();
      live.job_sequence = job.job_sequence();
      live.cancel_requested = job.cancel_requested();
      live.runs = record.runs.empty() ? 0 : record.runs.rbegin()->first;
      if (job.has_start_time()) live.start_time = core::ToTime(job.start_time());
      live.hold = record.hold;
      if (job.has_withdrawal()) live.withdrawal = job.withdrawal();
      live.returned_runs = record.returned_runs;
      for (const auto& [number, run] : record.runs) {
        if (live.returned_runs > 0 && contract::MayGoElsewhere(run))
          contract::NoteRefusal(run, &live.refusals);
      }
      if (job.has_retry_time()) live.retry_time = core::ToTime(job.retry_time());
      live.fail_overs = record.fail_overs;
      live.depends_on = DependenciesOf(record);
    }
    for (uint32_t number : record.open_runs) {
      out.runs.push_back({id, record.runs.at(number), /*is_last=*/false});
    }
    if (record.request_id.empty()) continue;
    core::RememberedRequest request{job.project(), record.request_id, record.fingerprint, id, {}};
    if (HasEnded(job)) {
      request.end_time = core::ToTime(job.end_time());
      if (*request.end_time < now - request_memory_) continue;
    }
    out.requests.push_back(std::move(request));
  }
  out.requirements = requirements.Take();
  return out;
}

absl::Status MemoryStore::Commit(absl::Span<const core::Change> changes) {
  const MutexLock lock(mutex_);
  if (!failure_.ok()) return failure_;
  if (failure_ = Check(changes); !failure_.ok()) return failure_;
  for (const core::Change& change : changes) {
    std::visit([this](const auto& typed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { Apply(typed); },
               change);
  }
  return absl::OkStatus();
}

absl::Status MemoryStore::Idle() { return absl::OkStatus(); }

absl::Status MemoryStore::Check(absl::Span<const core::Change> changes) const {
  uint64_t last_job = last_job_;
  uint64_t last_sequence = last_sequence_;
  for (const core::Change& change : changes) {
    if (const auto* insert = std::get_if<core::InsertJob>(&change)) {
      if (insert->id <= last_job) return absl::InternalError("a job's number was used again");
      last_job = insert->id;
    }
    if (const auto* append = std::get_if<core::AppendTransition>(&change)) {
      const uint64_t sequence = append->transition.sequence();
      if (sequence <= last_sequence) return absl::InternalError("a sequence was used again");
      last_sequence = sequence;
    }
  }
  return absl::OkStatus();
}

void MemoryStore::FailCommits(absl::Status status) {
  const MutexLock lock(mutex_);
  failure_ = std::move(status);
}

void MemoryStore::Apply(const core::InsertJob& change) {
  Record record;
  record.spec = change.spec;
  record.request_id = change.request_id;
  record.fingerprint = change.fingerprint;
  v1::Job& job = record.job;
  job.set_id(change.id);
  job.set_state(v1::JOB_STATE_QUEUED);
  job.set_name(change.spec->name());
  job.set_project(change.spec->project());
  job.set_priority(change.spec->priority());
  *job.mutable_labels() = change.spec->labels();
  job.set_user(change.user);
  job.set_job_sequence(1);
  job.set_rerun_of(change.rerun_of);
  core::SetTimestamp(change.create_time, job.mutable_create_time());
  jobs_.emplace(change.id, std::move(record));
  last_job_ = change.id;
}

void MemoryStore::Apply(const core::UpdateJob& change) {
  Record& record = jobs_.at(change.id);
  v1::Job& job = record.job;
  job.set_state(change.state);
  job.set_job_sequence(change.job_sequence);
  job.set_cancel_requested(change.cancel_requested);
  if (!change.cluster.empty()) {
    job.set_cluster(change.cluster);
    job.set_cluster_kind(change.cluster_kind);
  }
  if (change.start_time) core::SetTimestamp(*change.start_time, job.mutable_start_time());
  if (change.end_time) core::SetTimestamp(*change.end_time, job.mutable_end_time());
  record.hold = change.hold;
  record.fail_overs = change.fail_overs;
  PutHold(change.hold, &job);
  if (change.failed_dependency != 0) PutFailedDependency(change.failed_dependency, &job);
  job.clear_retry_time();
  if (change.retry_time) core::SetTimestamp(*change.retry_time, job.mutable_retry_time());
}

void MemoryStore::Apply(const core::PutWithdrawal& change) {
  Record& record = jobs_.at(change.job);
  record.returned_runs = change.returned_runs;
  record.job.clear_withdrawal();
  if (change.withdrawal) *record.job.mutable_withdrawal() = *change.withdrawal;
}

void MemoryStore::Apply(const core::EditJob& change) {
  Record& record = jobs_.at(change.id);
  record.edits[change.sequence] = {change.priority_before, change.labels_before};
  v1::Job& job = record.job;
  job.set_job_sequence(change.job_sequence);
  job.set_priority(change.priority);
  job.clear_labels();
  for (const auto& [key, value] : change.labels) (*job.mutable_labels())[key] = value;
  v1::JobSpec spec = *record.spec;
  spec.set_priority(change.priority);
  *spec.mutable_labels() = job.labels();
  record.spec = std::make_shared<const v1::JobSpec>(std::move(spec));
}

void MemoryStore::Apply(const core::PutRun& change) {
  Record& record = jobs_.at(change.job);
  const uint32_t number = change.run.number();
  record.runs[number] = change.run;
  if (change.sequence != 0) NoteChange(&record, change.job, number, change.sequence);
  if (change.is_last || change.run.logs_complete()) {
    record.open_runs.erase(number);
  } else {
    record.open_runs.insert(number);
  }
}

void MemoryStore::Apply(const core::PutUsage& change) {
  const auto record = jobs_.find(change.job);
  if (record == jobs_.end()) return;
  const auto run = record->second.runs.find(change.run);
  if (run == record->second.runs.end() || !TakeUsage(change, &run->second)) return;
  NoteChange(&record->second, change.job, change.run, change.sequence);
}

void MemoryStore::NoteChange(Record* record, uint64_t job, uint32_t run, uint64_t sequence) {
  if (const auto earlier = record->run_changes.find(run); earlier != record->run_changes.end())
    run_by_change_.erase(earlier->second);
  record->run_changes[run] = sequence;
  run_by_change_[sequence] = {job, run};
  last_sequence_ = std::max(last_sequence_, sequence);
}

void MemoryStore::Apply(const core::AppendTransition& change) {
  jobs_.at(change.job).transitions.push_back(change.transition);
  job_by_sequence_.emplace(change.transition.sequence(), change.job);
  last_sequence_ = std::max(last_sequence_, change.transition.sequence());
}

void MemoryStore::Apply(const core::PutCluster& change) { clusters_[change.name] = change; }

void MemoryStore::Apply(const core::AdvanceCluster& change) {
  clusters_.at(change.name).acked_event_sequence = change.acked_event_sequence;
}

void MemoryStore::Apply(const core::RemoveCluster& change) { clusters_.erase(change.name); }

void MemoryStore::Apply(const core::PutBrokerEpoch& change) { broker_epoch_ = change.epoch; }

void MemoryStore::Apply(const core::DeleteJob& change) {
  const auto found = jobs_.find(change.id);
  if (found == jobs_.end()) return;  // the job was named twice
  for (const v1::Transition& step : found->second.transitions) {
    job_by_sequence_.erase(step.sequence());
  }
  for (const auto& [_, sequence] : found->second.run_changes) run_by_change_.erase(sequence);
  jobs_.erase(found);
}

v1::JobState MemoryStore::StateOf(uint64_t id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? v1::JOB_STATE_UNSPECIFIED : found->second.job.state();
}

std::vector<core::LiveJob::Dependency> MemoryStore::DependenciesOf(const Record& record) const {
  if (!record.runs.empty()) return {};
  std::vector<v1::JobState> states;
  for (const v1::JobDependency& one : record.spec->depends_on())
    states.push_back(StateOf(one.job_id()));
  return RestoredDependencies(*record.spec, states);
}

absl::StatusOr<std::vector<v1::JobState>> MemoryStore::GetStates(
    absl::Span<const uint64_t> ids) const {
  const MutexLock lock(mutex_);
  std::vector<v1::JobState> states;
  states.reserve(ids.size());
  for (const uint64_t id : ids) states.push_back(StateOf(id));
  return states;
}

void MemoryStore::Apply(const core::PutUse& change) {
  uses_[{change.project, change.user}] = change;
}

void MemoryStore::Apply(const core::RemoveUse& change) {
  uses_.erase({change.project, change.user});
}

void MemoryStore::Apply(const core::AddUsage& change) { usage_.Add(change); }

absl::StatusOr<UsageRows> MemoryStore::ListUsage(const Scope& scope,
                                                 const UsageQuery& query) const {
  const MutexLock lock(mutex_);
  return usage_.List(scope, query);
}

absl::StatusOr<const MemoryStore::Record*> MemoryStore::Find(const Scope& scope,
                                                             uint64_t id) const {
  auto it = jobs_.find(id);
  if (it == jobs_.end()) return NotThere(id, last_job_);
  if (!Sees(scope, it->second)) return NoSuchJob(id);
  return &it->second;
}

bool MemoryStore::Sees(const Scope& scope, const Record& record) {
  return scope.Contains(record.job.project(), record.job.user());
}

v1::Job MemoryStore::Show(const Record& record, bool include_spec) {
  v1::Job job = record.job;
  if (include_spec) *job.mutable_spec() = *record.spec;
  ShowState(record.runs.empty() ? nullptr : &record.runs.rbegin()->second, &job);
  return job;
}

absl::StatusOr<v1::Job> MemoryStore::GetJob(const Scope& scope, uint64_t id) const {
  const MutexLock lock(mutex_);
  auto record = Find(scope, id);
  if (!record.ok()) return record.status();
  v1::Job job = Show(**record, /*include_spec=*/true);
  for (const auto& [number, run] : (*record)->runs) *job.add_runs() = run;
  if (!job.held()) return job;
  const std::vector<v1::Transition>& steps = (*record)->transitions;
  const auto held = std::find_if(steps.rbegin(), steps.rend(), [](const v1::Transition& step) {
    return step.kind() == v1::TRANSITION_KIND_HOLD_REQUESTED;
  });
  if (held != steps.rend()) ShowHold(*held, &job);
  return job;
}

absl::StatusOr<std::vector<v1::Job>> MemoryStore::GetJobs(const Scope& scope,
                                                          absl::Span<const uint64_t> ids) const {
  const MutexLock lock(mutex_);
  std::vector<v1::Job> jobs;
  jobs.reserve(ids.size());
  for (uint64_t id : ids) {
    auto record = Find(scope, id);
    if (!record.ok()) return record.status();
    jobs.push_back(Show(**record, /*include_spec=*/false));
  }
  return jobs;
}

absl::StatusOr<std::vector<v1::Job>> MemoryStore::GetJobsAndRuns(
    const Scope& scope, absl::Span<const uint64_t> ids) const {
  const MutexLock lock(mutex_);
  std::vector<v1::Job> jobs;
  jobs.reserve(ids.size());
  for (uint64_t id : ids) {
    auto record = Find(scope, id);
    if (!record.ok()) return record.status();
    v1::Job& job = jobs.emplace_back(Show(**record, /*include_spec=*/false));
    for (const auto& [number, run] : (*record)->runs) *job.add_runs() = ForFilters(run);
  }
  return jobs;
}

absl::StatusOr<JobPage> MemoryStore::ListJobs(const Scope& scope, const ListQuery& query) const {
  const MutexLock lock(mutex_);
  const contract::Filter filter = scope.Narrow(query.filter);
  auto after = ReadPageToken(instance_, filter, query.order, query.page_token);
  if (!after.ok()) return after.status();
  std::vector<std::pair<contract::JobPlace, const Record*>> all;
  for (const auto& [id, record] : jobs_) {
    contract::JobPlace place = contract::PlaceOf(record.job, query.order);
    if (*after && !contract::ComesBefore(**after, place, query.order)) continue;
    all.emplace_back(std::move(place), &record);
  }
  std::sort(all.begin(), all.end(), [&query](const auto& a, const auto& b) {
    return contract::ComesBefore(a.first, b.first, query.order);
  });
  JobPage page;
  int scanned = 0;
  size_t bytes = 0;
  const contract::JobPlace* last = nullptr;
  for (const auto& [place, record] : all) {
    if (static_cast<int>(page.jobs.size()) == query.page_size || scanned++ == kMaxScannedJobs ||
        bytes >= kMaxPageBytes) {
      page.next_page_token = MakePageToken(instance_, filter, query.order, *last);
      return page;
    }
    last = &place;
    v1::Job job = Show(*record, query.include_spec);
    if (query.include_spec && query.spec_mask != nullptr) {
      const auto part = query.spec_mask->Cut(job.spec().SerializeAsString());
      job.mutable_spec()->ParseFromString(part.value_or(""));
    }
    if (!filter.Matches(job)) continue;
    if (query.include_latest_run && !record->runs.empty())
      *job.add_runs() = record->runs.rbegin()->second;
    bytes += job.ByteSizeLong();
    page.jobs.push_back(std::move(job));
  }
  return page;
}

absl::StatusOr<JobCounts> MemoryStore::CountJobs(const Scope& scope,
                                                 const CountQuery& query) const {
  const MutexLock lock(mutex_);
  CountGroups groups(query.limit);
  for (const auto& [id, record] : jobs_) {
    const v1::Job job = Show(record, /*include_spec=*/false);
    if (!Sees(scope, record) || !query.filter.Matches(job)) continue;
    v1::JobCount group;
    for (const v1::JobGrouping grouping : query.group_by) {
      if (grouping == v1::JOB_GROUPING_STATE) group.set_state(job.state());
      if (grouping == v1::JOB_GROUPING_CLUSTER) group.set_cluster(job.cluster());
      if (grouping == v1::JOB_GROUPING_USER) group.set_user(job.user());
      if (grouping == v1::JOB_GROUPING_PROJECT) group.set_project(job.project());
      const auto label = job.labels().find(query.label);
      if (grouping == v1::JOB_GROUPING_LABEL && label != job.labels().end()) {
        group.set_label_value(label->second);
      }
    }
    if (!groups.Add(std::move(group))) break;
  }
  return groups.Take();
}

absl::StatusOr<std::vector<v1::Job>> MemoryStore::GetJobsOfRequest(
    const Scope& scope, uint64_t first, const std::string& request_id) const {
  const MutexLock lock(mutex_);
  std::vector<v1::Job> jobs;
  for (auto it = jobs_.find(first); it != jobs_.end(); ++it) {
    if (!core::IsOfRerun(it->second.request_id, request_id, it->first == first)) break;
    if (Sees(scope, it->second)) jobs.push_back(it->second.job);
  }
  return jobs;
}

absl::StatusOr<std::vector<JobTransition>> MemoryStore::ListTransitions(
    const Scope& scope, absl::Span<const uint64_t> jobs, uint64_t after_sequence, int limit) const {
  const MutexLock lock(mutex_);
  const std::set<uint64_t> wanted(jobs.begin(), jobs.end());
  std::vector<JobTransition> out;
  auto it = job_by_sequence_.upper_bound(after_sequence);
  for (; it != job_by_sequence_.end() && static_cast<int>(out.size()) < limit; ++it) {
    const auto [sequence, job] = *it;
    if (!wanted.empty() && !wanted.contains(job)) continue;
    const Record& record = jobs_.at(job);
    if (!Sees(scope, record)) continue;
    const std::vector<v1::Transition>& all = record.transitions;
    auto at = std::lower_bound(
        all.begin(), all.end(), sequence,
        [](const v1::Transition& transition, uint64_t s) { return transition.sequence() < s; });
    JobTransition& item = out.emplace_back();
    item.job = job;
    item.transition = *at;
    const auto own = record.edits.find(sequence);
    if (own != record.edits.end()) item.edited = own->second;
    const auto later = record.edits.upper_bound(sequence);
    if (later != record.edits.end()) item.edited_later = later->second;
  }
  return out;
}

absl::StatusOr<std::vector<RunChange>> MemoryStore::ListRunChanges(const Scope& scope,
                                                                   absl::Span<const uint64_t> jobs,
                                                                   uint64_t after_sequence,
                                                                   int limit) const {
  const MutexLock lock(mutex_);
  const std::set<uint64_t> wanted(jobs.begin(), jobs.end());
  std::vector<RunChange> out;
  auto it = run_by_change_.upper_bound(after_sequence);
  for (; it != run_by_change_.end() && static_cast<int>(out.size()) < limit; ++it) {
    const auto [job, number] = it->second;
    if (!wanted.empty() && !wanted.contains(job)) continue;
    const Record& record = jobs_.at(job);
    RunChange& item = out.emplace_back();
    item.sequence = it->first;
    if (!Sees(scope, record)) continue;
    item.job = job;
    item.run = record.runs.at(number);
  }
  return out;
}

absl::StatusOr<std::vector<uint64_t>> MemoryStore::ListEnded(absl::Time before,
                                                             int max_rows) const {
  const MutexLock lock(mutex_);
  std::vector<std::pair<absl::Time, const Record*>> ended;
  for (const auto& [id, record] : jobs_) {
    if (!HasEnded(record.job) || !record.open_runs.empty()) continue;
    const absl::Time end = core::ToTime(record.job.end_time());
    if (end < before) ended.emplace_back(end, &record);
  }
  std::stable_sort(ended.begin(), ended.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<uint64_t> jobs;
  size_t rows = 0;
  for (const auto& [end, record] : ended) {
    rows += 3 + record->transitions.size() + record->runs.size() + record->edits.size();
    if (rows > static_cast<size_t>(max_rows) && !jobs.empty()) break;
    jobs.push_back(record->job.id());
  }
  return jobs;
}

absl::StatusOr<uint64_t> MemoryStore::LastSequence() const {
  const MutexLock lock(mutex_);
  return last_sequence_;
}

absl::StatusOr<std::vector<StoredSpec>> MemoryStore::GetSpecs(
    const Scope& scope, absl::Span<const uint64_t> ids) const {
  const MutexLock lock(mutex_);
  std::vector<StoredSpec> out;
  out.reserve(ids.size());
  for (uint64_t id : ids) {
    auto record = Find(scope, id);
    if (!record.ok()) return record.status();
    const Record& found = **record;
    out.push_back({*found.spec, found.job.user(), {}});
    if (!found.spec->retry().exclude_failed_nodes()) continue;
    google::protobuf::RepeatedPtrField<v1::Run> runs;
    for (const auto& [number, run] : found.runs) *runs.Add() = run;
    out.back().excluded_nodes = FailedNodes(runs);
  }
  return out;
}

}  // namespace muster::store
