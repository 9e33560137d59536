#include "broker/engine/change_feed.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_set.h"
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
  if (!update.cluster.empty()) job->set_cluster(update.cluster);
  store::PutHold(update.hold, job);
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
  core::SetTimestamp(insert.create_time, job.mutable_create_time());
  return job;
}

// Leaves the columns of a job that was read.
void StripState(v1::Job* job) {
  job->clear_runs();
  job->clear_spec();
  job->clear_exit();
  job->clear_failure();
  const bool is_released = job->state_reason().code() == v1::STATE_REASON_CODE_RELEASED;
  job->clear_state_reason();
  if (is_released) store::PutHold(core::HoldState::kReleased, job);
}

// What the job was before its first change since it was read, as far as a filter can tell.
v1::Job Before(v1::Job job, const core::AppendTransition& change) {
  const v1::JobState state = change.state_before;
  const bool had_begun = state != v1::JOB_STATE_QUEUED && state != v1::JOB_STATE_PENDING;
  const bool is_first_run = change.transition.run() <= 1;
  job.set_state(state);
  if (!contract::IsTerminal(state)) job.clear_end_time();
  if (is_first_run && !had_begun) job.clear_start_time();
  if (is_first_run && state == v1::JOB_STATE_QUEUED) job.clear_cluster();
  const v1::TransitionKind kind = change.transition.kind();
  if (kind == v1::TRANSITION_KIND_HOLD_REQUESTED) job.set_held(false);
  if (kind == v1::TRANSITION_KIND_RELEASE_REQUESTED) job.set_held(true);
  return job;
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
  if (!UnknownOf(steps).empty()) return false;
  Append(steps, last);
  return true;
}

void ChangeFeed::Add(const core::Changes& committed, uint64_t last) {
  if (!tail_->IsWanted()) {
    ForgetAll();
    return tail_->Skip(last);
  }
  const Steps steps = StepsOf(committed);
  if (absl::Status status = Learn(UnknownOf(steps), steps); !status.ok()) {
    // Watchers find in the store what cannot be shown here.
    LogEvent(spdlog::level::err, "changes_not_shown",
             {{"error", std::string(ToStd(status.message()))}});
    return tail_->Skip(last);
  }
  Append(steps, last);
}

void ChangeFeed::Append(const Steps& steps, uint64_t last) {
  std::vector<TailEntry> entries;
  for (const auto& [job, step] : steps) {
    if (step.insert != nullptr) Insert(NewJob(*step.insert));
    AddStep(job, step, &entries);
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
    }
  }
  return steps;
}

bool ChangeFeed::Tells(const Step& step) {
  return !step.transitions.empty() ||
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

absl::Status ChangeFeed::Learn(const Unknown& unknown, const Steps& steps) {
  absl::flat_hash_map<uint64_t, const core::EditJob*> edits;  // the first one of each job
  for (const auto& [job, step] : steps) {
    if (step.edit != nullptr) edits.try_emplace(job, step.edit);
  }
  for (const auto& [id, step] : unknown) {
    const bool has_run = !step->runs.empty();
    // Without a run of its own in the step, what the job waits for is said by the one that it has.
    auto job = has_run ? ReadJob(id) : store_->GetJob(store::Scope::All(), id);
    // It was removed meanwhile.
    if (absl::IsNotFound(job.status())) continue;
    if (!job.ok()) return job.status();
    const auto edit = edits.find(id);
    LearnFrom(*std::move(job), *step, edit == edits.end() ? nullptr : edit->second);
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Job> ChangeFeed::ReadJob(uint64_t id) const {
  auto jobs = store_->GetJobs(store::Scope::All(), {id});
  if (!jobs.ok()) return jobs.status();
  return std::move(jobs->front());
}

void ChangeFeed::LearnFrom(v1::Job job, const Step& step, const core::EditJob* first_edit) {
  std::shared_ptr<const v1::Run> latest;
  if (!job.runs().empty()) latest = std::make_shared<const v1::Run>(*job.runs().rbegin());
  StripState(&job);
  // The store has it as it is after all these steps.
  if (first_edit != nullptr)
    SetEditable(first_edit->priority_before, first_edit->labels_before, &job);
  Known* const known = Insert(std::move(job));
  known->latest = std::move(latest);
  v1::WatchJobsResponse before;
  *before.mutable_change()->mutable_job() =
      step.transitions.empty() ? known->job : Before(known->job, *step.transitions.front());
  known->shown = Serialize(before);
  known_bytes_ += BytesOf(known->shown);
}

void ChangeFeed::AddStep(uint64_t job, const Step& step, std::vector<TailEntry>* entries) {
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
    known->job.set_cluster(run->cluster());
    if (run->has_start_time() && !known->job.has_start_time()) {
      *known->job.mutable_start_time() = run->start_time();
    }
  }
  known->job.set_state(transition.job_state());
  known->job.set_job_sequence(transition.job_sequence());
  if (transition.kind() == v1::TRANSITION_KIND_HOLD_REQUESTED) {
    known->hold = std::make_shared<const v1::Transition>(transition);
  }
  const bool is_last = &change == step.transitions.back();
  if (is_last && step.update != nullptr) Apply(*step.update, &known->job);
  if (is_last && step.edit != nullptr)
    SetEditable(step.edit->priority, step.edit->labels, &known->job);
  Show(transition.sequence(), &transition, run, known, entries);
}

void ChangeFeed::Show(uint64_t sequence, const v1::Transition* transition, const v1::Run* run,
                      Known* known, std::vector<TailEntry>* entries) {
  v1::WatchJobsResponse message;
  v1::JobChange& change = *message.mutable_change();
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
