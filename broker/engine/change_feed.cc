#include "broker/engine/change_feed.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_set.h"
#include "broker/core/cluster_view.h"
#include "broker/core/timestamps.h"
#include "broker/store/job_view.h"
#include "contract/states.h"
#include "contract/text.h"
#include "daemon/log.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::broker {
namespace {

void SetOrClear(const std::optional<absl::Time>& time,
                google::protobuf::Timestamp* (v1::Job::*set)(), void (v1::Job::*clear)(),
                v1::Job* job) {
  if (time) {
    core::SetTimestamp(*time, (job->*set)());
  } else {
    (job->*clear)();
  }
}

void Apply(const core::UpdateJob& update, v1::Job* job) {
  job->set_state(update.state);
  job->set_job_sequence(update.job_sequence);
  job->set_cancel_requested(update.cancel_requested);
  if (!update.cluster.empty()) {
    job->set_cluster(update.cluster);
    job->set_cluster_kind(update.cluster_kind);
  }
  store::PutHold(update.hold, job);
  if (update.failed_dependency != 0) store::PutFailedDependency(update.failed_dependency, job);
  SetOrClear(update.start_time, &v1::Job::mutable_start_time, &v1::Job::clear_start_time, job);
  SetOrClear(update.end_time, &v1::Job::mutable_end_time, &v1::Job::clear_end_time, job);
  SetOrClear(update.retry_time, &v1::Job::mutable_retry_time, &v1::Job::clear_retry_time, job);
}

void SetEditable(int32_t priority, const std::map<std::string, std::string>& labels, v1::Job* job) {
  job->set_priority(priority);
  job->clear_labels();
  for (const auto& [key, value] : labels) (*job->mutable_labels())[key] = value;
}

v1::Job NewJob(const core::InsertJob& insert) {
  const v1::JobSpec& spec = *insert.spec;
  v1::Job job;
  job.set_id(insert.id);
  job.set_state(v1::JOB_STATE_QUEUED);
  job.set_name(spec.name());
  job.set_project(spec.project());
  job.set_priority(spec.priority());
  *job.mutable_labels() = spec.labels();
  job.set_user(insert.user);
  job.set_rerun_of(insert.rerun_of);
  core::SetTimestamp(insert.create_time, job.mutable_create_time());
  return job;
}

// Leaves the columns of a job that was read.
void StripState(v1::Job* job) {
  job->clear_runs();
  job->clear_exit();
  job->clear_failure();
  const bool is_released = job->state_reason().code() == v1::STATE_REASON_CODE_RELEASED;
  job->clear_state_reason();
  if (is_released) store::PutHold(core::HoldState::kReleased, job);
}

// A run that the store has, as it was when it had this state. A reason explains one state.
std::shared_ptr<const v1::Run> RunThen(const google::protobuf::RepeatedPtrField<v1::Run>& runs,
                                       const store::JobPast& past) {
  for (const v1::Run& run : runs) {
    if (run.number() != past.steps.run()) continue;
    auto then = std::make_shared<v1::Run>(run);
    then->set_state(past.steps.run_state());
    if (!contract::IsTerminal(then->state())) {
      then->clear_exit();
      then->clear_failure();
      then->clear_end_time();
      then->clear_usage();
    }
    if (past.run_moved_on) {
      then->clear_state_reason();
      then->clear_estimated_start_time();
    }
    return then;
  }
  return nullptr;
}

uint64_t FirstSequence(const std::vector<const core::AppendTransition*>& transitions,
                       const std::vector<const core::PutRun*>& runs,
                       const std::vector<const core::PutUsage*>& usages) {
  uint64_t first = std::numeric_limits<uint64_t>::max();
  for (const core::AppendTransition* change : transitions)
    first = std::min(first, change->transition.sequence());
  for (const core::PutRun* put : runs) {
    if (put->sequence != 0) first = std::min(first, put->sequence);
  }
  for (const core::PutUsage* put : usages) first = std::min(first, put->sequence);
  return first;
}

// Null: the job does not have it.
const v1::Run* RunOf(const v1::Job& job, uint32_t number) {
  const auto run = std::find_if(job.runs().begin(), job.runs().end(),
                                [&](const v1::Run& one) { return one.number() == number; });
  return run == job.runs().end() ? nullptr : &*run;
}

ChangeBytes Serialize(const v1::WatchJobsResponse& message) {
  return std::make_shared<const std::string>(message.SerializeAsString());
}

}  // namespace

bool ChangeFeed::AddFromMemory(const core::Changes& committed, uint64_t last) {
  if (!tail_->IsWanted()) {
    ForgetAll();
    tail_->Skip(last);
    return true;
  }
  const Steps steps = StepsOf(committed);
  const bool has_late = std::any_of(steps.begin(), steps.end(),
                                    [](const auto& step) { return !step.second.usages.empty(); });
  if (has_late || !UnknownOf(steps).empty()) return false;
  Append(steps, {}, last);
  return true;
}

void ChangeFeed::Add(const core::Changes& committed, uint64_t last) {
  if (!tail_->IsWanted()) {
    ForgetAll();
    return tail_->Skip(last);
  }
  const Steps steps = StepsOf(committed);
  const absl::StatusOr<LateJobs> late = ReadLateJobs(steps);
  const absl::Status status = late.ok() ? Learn(UnknownOf(steps), *late) : late.status();
  if (!status.ok()) {
    // Watchers find in the store what cannot be shown here.
    LogEvent(spdlog::level::err, "changes_not_shown",
             {{"error", std::string(ToStd(status.message()))}});
    return tail_->Skip(last);
  }
  Append(steps, *late, last);
}

void ChangeFeed::Append(const Steps& steps, const LateJobs& late, uint64_t last) {
  std::vector<TailEntry> entries;
  for (const auto& [job, step] : steps) {
    if (step.insert != nullptr) Insert(NewJob(*step.insert));
    AddStep(job, step, late, &entries);
  }
  while (known_.size() > options_.max_known_jobs || known_bytes_ > options_.max_known_bytes) {
    Forget(uses_.back());
  }
  std::sort(entries.begin(), entries.end(),
            [](const TailEntry& a, const TailEntry& b) { return a.sequence < b.sequence; });
  tail_->Append(std::move(entries), last);
}

void ChangeFeed::ForgetAll() {
  known_.clear();
  uses_.clear();
  known_bytes_ = 0;
}

ChangeFeed::Steps ChangeFeed::StepsOf(const core::Changes& changes) {
  Steps steps;
  absl::flat_hash_map<uint64_t, size_t> latest;  // step of each job
  const auto step_of = [&](uint64_t job, bool is_new) -> Step& {
    const auto [at, inserted] = latest.try_emplace(job, steps.size());
    if (inserted || is_new) {
      at->second = steps.size();
      steps.emplace_back(job, Step{});
    }
    return steps[at->second].second;
  };
  for (const core::Change& change : changes) {
    if (const auto* insert = std::get_if<core::InsertJob>(&change)) {
      step_of(insert->id, /*is_new=*/true).insert = insert;
    } else if (const auto* append = std::get_if<core::AppendTransition>(&change)) {
      const Step& open = step_of(append->job, false);
      const bool is_over = open.update != nullptr || open.edit != nullptr || !open.runs.empty();
      step_of(append->job, is_over).transitions.push_back(append);
    } else if (const auto* update = std::get_if<core::UpdateJob>(&change)) {
      step_of(update->id, false).update = update;
    } else if (const auto* edit = std::get_if<core::EditJob>(&change)) {
      step_of(edit->id, false).edit = edit;
    } else if (const auto* run = std::get_if<core::PutRun>(&change)) {
      step_of(run->job, false).runs.push_back(run);
    } else if (const auto* usage = std::get_if<core::PutUsage>(&change)) {
      step_of(usage->job, false).usages.push_back(usage);
    } else if (const auto* withdrawal = std::get_if<core::PutWithdrawal>(&change)) {
      step_of(withdrawal->job, false).withdrawal = withdrawal;
    }
  }
  return steps;
}

bool ChangeFeed::Tells(const Step& step) {
  return !step.transitions.empty() || !step.usages.empty() ||
         std::any_of(step.runs.begin(), step.runs.end(),
                     [](const core::PutRun* run) { return run->sequence != 0; });
}

ChangeFeed::Unknown ChangeFeed::UnknownOf(const Steps& steps) const {
  absl::flat_hash_set<uint64_t> seen;
  Unknown unknown;
  for (const auto& [job, step] : steps) {
    if (step.insert != nullptr) {
      seen.insert(job);
      continue;
    }
    if (known_.contains(job) || !Tells(step)) continue;
    if (seen.insert(job).second) unknown.emplace_back(job, &step);
  }
  return unknown;
}

absl::Status ChangeFeed::Learn(const Unknown& unknown, const LateJobs& late) {
  for (const auto& [id, step] : unknown) {
    const auto is_read = late.find(id);
    auto job = is_read == late.end() ? store_->GetJob(store::Scope::All(), id)
                                     : absl::StatusOr<v1::Job>(is_read->second);
    // It was removed meanwhile.
    if (absl::IsNotFound(job.status())) continue;
    if (!job.ok()) return job.status();
    // The past is read after the job: the store may be ahead of this step, and the job's state
    // before the step follows from its history.
    auto past = store::ReadPast(*store_, store::Scope::All(), id,
                                FirstSequence(step->transitions, step->runs, step->usages) - 1);
    if (!past.ok()) return past.status();
    LearnFrom(*std::move(job), *past);
  }
  return absl::OkStatus();
}

absl::StatusOr<ChangeFeed::LateJobs> ChangeFeed::ReadLateJobs(const Steps& steps) const {
  LateJobs late;
  for (const auto& [id, step] : steps) {
    if (step.usages.empty()) continue;
    auto job = store_->GetJob(store::Scope::All(), id);
    if (absl::IsNotFound(job.status())) continue;
    if (!job.ok()) return job.status();
    late[id] = *std::move(job);
  }
  return late;
}

void ChangeFeed::LearnFrom(v1::Job now, const store::JobPast& past) {
  now.clear_spec();
  if (past.steps.empty()) {
    StripState(&now);
    Insert(std::move(now));
    return;
  }
  v1::WatchJobsResponse before;
  v1::Job& then = *before.add_changes()->mutable_job();
  then = past.steps.Then(now, past.edited_later,
                         [this](const std::string& cluster) { return KindOf(cluster); });
  Known* const known = Insert(then);
  StripState(&known->job);
  const bool waits_for_same_run = then.state() == v1::JOB_STATE_QUEUED && now.runs_size() > 0 &&
                                  now.runs().rbegin()->number() == past.steps.run();
  if (waits_for_same_run && now.has_retry_time())
    *known->job.mutable_retry_time() = now.retry_time();
  known->steps = past.steps;
  known->latest = RunThen(now.runs(), past);
  known->hold = past.hold;
  known->shown = Serialize(before);
  known_bytes_ += BytesOf(known->shown);
}

v1::ClusterKind ChangeFeed::KindOf(const std::string& cluster) const {
  return core::KindOf(cluster, *clusters_->Read());
}

void ChangeFeed::AddStep(uint64_t job, const Step& step, const LateJobs& late,
                         std::vector<TailEntry>* entries) {
  const auto found = known_.find(job);
  if (found == known_.end()) return;
  Known* const known = found->second.get();
  for (const core::AppendTransition* change : step.transitions) {
    AddTransition(*change, step, known, entries);
  }
  for (const core::PutRun* put : step.runs) {
    const bool is_latest = known->latest == nullptr || put->run.number() >= known->latest->number();
    if (is_latest) known->latest = std::make_shared<const v1::Run>(put->run);
    if (put->sequence != 0) Show(put->sequence, nullptr, &put->run, known, entries);
  }
  for (const core::PutUsage* put : step.usages) {
    const auto now = late.find(job);
    const v1::Run* run = now == late.end() ? nullptr : RunOf(now->second, put->run);
    if (run == nullptr) continue;
    const bool is_latest = known->latest != nullptr && put->run == known->latest->number();
    if (is_latest) known->latest = std::make_shared<const v1::Run>(*run);
    Show(put->sequence, nullptr, run, known, entries);
  }
  if (contract::IsTerminal(known->job.state())) return Forget(job);
  uses_.splice(uses_.begin(), uses_, known->use);
}

void ChangeFeed::AddTransition(const core::AppendTransition& change, const Step& step, Known* known,
                               std::vector<TailEntry>* entries) {
  const v1::Transition& transition = change.transition;
  const v1::Run* run = change.run_then.get();
  const auto put = std::find_if(step.runs.begin(), step.runs.end(), [&](const core::PutRun* p) {
    return p->run.number() == transition.run();
  });
  if (run == nullptr && put != step.runs.end()) run = &(*put)->run;
  if (run != nullptr && (known->latest == nullptr || run->number() >= known->latest->number())) {
    known->latest = std::make_shared<const v1::Run>(*run);
    if (run->cluster() != known->job.cluster()) {
      known->job.set_cluster(run->cluster());
      known->job.set_cluster_kind(KindOf(run->cluster()));
    }
    if (run->has_start_time() && !known->job.has_start_time()) {
      *known->job.mutable_start_time() = run->start_time();
    }
  }
  known->steps.Take(transition);
  known->steps.Show(&known->job);
  if (transition.kind() == v1::TRANSITION_KIND_HOLD_REQUESTED) {
    known->hold = std::make_shared<const v1::Transition>(transition);
  }
  const bool is_last = &change == step.transitions.back();
  if (is_last && step.update != nullptr) Apply(*step.update, &known->job);
  if (is_last && step.withdrawal != nullptr && step.withdrawal->withdrawal)
    *known->job.mutable_withdrawal() = *step.withdrawal->withdrawal;
  if (is_last && step.edit != nullptr)
    SetEditable(step.edit->priority, step.edit->labels, &known->job);
  Show(transition.sequence(), &transition, run, known, entries);
}

void ChangeFeed::Show(uint64_t sequence, const v1::Transition* transition, const v1::Run* run,
                      Known* known, std::vector<TailEntry>* entries) {
  v1::WatchJobsResponse message;
  v1::JobChange& change = *message.add_changes();
  change.set_sequence(sequence);
  v1::Job& job = *change.mutable_job();
  job = known->job;
  store::ShowState(known->latest.get(), &job);
  if (job.held() && known->hold != nullptr) store::ShowHold(*known->hold, &job);
  if (run != nullptr) *job.add_runs() = *run;
  if (transition != nullptr) *change.mutable_transition() = *transition;
  ChangeBytes bytes = Serialize(message);
  known_bytes_ += BytesOf(bytes) - BytesOf(known->shown);
  entries->push_back({.sequence = sequence,
                      .job = job.id(),
                      .has_ended = contract::IsTerminal(job.state()),
                      .change = bytes,
                      .before = std::exchange(known->shown, bytes)});
}

// The job and its run are in memory besides, as messages.
size_t ChangeFeed::BytesOf(const ChangeBytes& shown) {
  return shown == nullptr ? 0 : 4 * shown->size();
}

ChangeFeed::Known* ChangeFeed::Insert(v1::Job job) {
  const uint64_t id = job.id();
  uses_.push_front(id);
  auto known = std::make_unique<Known>();
  known->job = std::move(job);
  known->use = uses_.begin();
  return (known_[id] = std::move(known)).get();
}

void ChangeFeed::Forget(uint64_t job) {
  const auto found = known_.find(job);
  known_bytes_ -= BytesOf(found->second->shown);
  uses_.erase(found->second->use);
  known_.erase(found);
}

}  // namespace muster::broker
