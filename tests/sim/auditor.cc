#include "tests/sim/auditor.h"

#include <algorithm>

#include "fmt/format.h"
#include "google/protobuf/util/message_differencer.h"

namespace muster::sim {
namespace {

using google::protobuf::util::MessageDifferencer;

// Returns the progress of a run; written down here apart from the contract's table.
int Rank(v1::RunState state) { return static_cast<int>(state); }

bool HasEnded(v1::RunState state) { return Rank(state) >= Rank(v1::RUN_STATE_SUCCEEDED); }
bool HasEnded(v1::JobState state) { return state >= v1::JOB_STATE_SUCCEEDED; }

bool MayFollow(v1::RunState from, v1::RunState to) {
  if (from == to || HasEnded(from)) return false;
  if (from == v1::RUN_STATE_UNSPECIFIED) return to == v1::RUN_STATE_ASSIGNED;
  if (to == v1::RUN_STATE_LOST) return true;
  if (from == v1::RUN_STATE_ASSIGNED) {
    return to == v1::RUN_STATE_LAUNCHING || to == v1::RUN_STATE_LAUNCH_UNKNOWN ||
           to == v1::RUN_STATE_FAILED || to == v1::RUN_STATE_CANCELED;
  }
  if (Rank(to) > Rank(from))
    return from != v1::RUN_STATE_FINISHING || to != v1::RUN_STATE_SUSPENDED;
  const bool launches_again = from == v1::RUN_STATE_LAUNCH_UNKNOWN && to == v1::RUN_STATE_LAUNCHING;
  const bool resumes = from == v1::RUN_STATE_SUSPENDED && to == v1::RUN_STATE_RUNNING;
  const bool is_requeued =
      to == v1::RUN_STATE_PENDING && Rank(from) >= Rank(v1::RUN_STATE_STARTING);
  return launches_again || resumes || is_requeued;
}

v1::JobState JobStateOf(v1::RunState run, bool cancel_requested) {
  if (run == v1::RUN_STATE_SUCCEEDED) return v1::JOB_STATE_SUCCEEDED;
  if (run == v1::RUN_STATE_CANCELED) return v1::JOB_STATE_CANCELED;
  if (HasEnded(run) && cancel_requested) return v1::JOB_STATE_CANCELED;
  if (HasEnded(run)) return v1::JOB_STATE_FAILED;
  if (run == v1::RUN_STATE_SUSPENDED) return v1::JOB_STATE_SUSPENDED;
  if (run == v1::RUN_STATE_RUNNING || run == v1::RUN_STATE_FINISHING) return v1::JOB_STATE_RUNNING;
  return v1::JOB_STATE_PENDING;
}

std::string Text(v1::RunState state) { return v1::RunState_Name(state); }
std::string Text(v1::JobState state) { return v1::JobState_Name(state); }

}  // namespace

void Auditor::Fail(std::string_view invariant, std::string what) {
  world_.history.Note(world_.loop, "VIOLATION {}: {}", invariant, what);
  if (violation_.empty()) violation_ = fmt::format("{}: {}", invariant, what);
}

// ---- clients

void Auditor::SubmitAcknowledged(const std::string& operation, uint64_t job) {
  const auto [first, is_new] = acknowledged_.emplace(operation, job);
  if (!is_new && first->second != job) {
    Fail("once", fmt::format("{} was job {} and is now job {}", operation, first->second, job));
  }
  const auto committed = jobs_.find(job);
  if (committed == jobs_.end()) {
    Fail("durable", fmt::format("job {} was acknowledged and is not committed", job));
  } else if (committed->second.operation != operation) {
    Fail("once", fmt::format("{} was told job {}, which is {}", operation, job,
                             committed->second.operation));
  }
}

void Auditor::CancelAcknowledged(uint64_t job) {
  canceled_.insert(job);
  const JobBook& book = jobs_[job];
  if (!book.cancel_requested && !HasEnded(book.state)) {
    Fail("cancel", fmt::format("the cancel of job {} was acknowledged and is not committed", job));
  }
}

void Auditor::Watched(uint64_t job, const v1::Transition& transition) {
  if (!watched_.empty() && transition.sequence() <= watched_.back().second) {
    Fail("history", fmt::format("a watch saw sequence {} after {}", transition.sequence(),
                                watched_.back().second));
  }
  watched_.emplace_back(job, transition.sequence());
}

// ---- the broker

void Auditor::Committed(absl::Span<const core::Change> changes) {
  for (const core::Change& change : changes) {
    std::visit([this](const auto& typed) { Commit(typed); }, change);
  }
  // Rows must agree with the transitions once the commit is whole.
  for (const core::Change& change : changes) {
    if (const auto* put = std::get_if<core::PutRun>(&change)) {
      const RunBook& run = jobs_[put->job].runs[put->run.number()];
      if (run.state != run.last_put.state()) {
        Fail("replay",
             fmt::format("run {} is stored as {}, its transitions say {}", put->run.run_key(),
                         Text(run.last_put.state()), Text(run.state)));
      }
    } else if (const auto* update = std::get_if<core::UpdateJob>(&change)) {
      const JobBook& book = jobs_[update->id];
      if (book.last_update && book.state != book.last_update->state) {
        Fail("replay", fmt::format("job {} is stored as {}, its transitions say {}", update->id,
                                   Text(book.last_update->state), Text(book.state)));
      }
    }
  }
  for (const core::Change& change : changes) {
    const auto* put = std::get_if<core::PutRun>(&change);
    if (put == nullptr || put->run.state() != v1::RUN_STATE_FAILED) continue;
    const JobBook& book = jobs_[put->job];
    CheckFollowed(put->run.run_key(), book.runs.at(put->run.number()), book);
  }
  CheckConservation();
  CheckQuota();
  CheckDependents();
}

void Auditor::CheckConservation() {
  size_t queued = 0, active = 0, ended = 0;
  for (const auto& [id, book] : jobs_) {
    const auto live = std::count_if(book.runs.begin(), book.runs.end(),
                                    [](const auto& run) { return !HasEnded(run.second.state); });
    const bool waits = book.state == v1::JOB_STATE_QUEUED;
    if (live == 0 && waits) ++queued;
    if (live == 1 && !waits && !HasEnded(book.state)) ++active;
    if (live == 0 && HasEnded(book.state)) ++ended;
  }
  if (queued + active + ended == jobs_.size()) return;
  Fail("conservation", fmt::format("{} jobs were submitted; {} are queued, {} active, {} ended",
                                   jobs_.size(), queued, active, ended));
}

void Auditor::Commit(const core::InsertJob& change) {
  const std::string operation = change.spec->labels().at("operation");
  if (jobs_.contains(change.id)) Fail("durable", fmt::format("job {} was made twice", change.id));
  const auto [first, is_new] = job_of_operation_.emplace(operation, change.id);
  if (!is_new) {
    Fail("once", fmt::format("{} is job {} and job {}", operation, first->second, change.id));
  }
  JobBook& book = jobs_[change.id];
  book.operation = operation;
  book.spec = std::make_shared<v1::JobSpec>(*change.spec);
  if (book.spec->depends_on_size() > 0) dependents_.insert(change.id);
}

void Auditor::Commit(const core::AppendTransition& change) {
  const auto found = jobs_.find(change.job);
  if (found == jobs_.end()) {
    return Fail("conservation", fmt::format("a transition of job {}, which is none", change.job));
  }
  JobBook& book = found->second;
  const v1::Transition& transition = change.transition;
  if (transition.job_sequence() != ++book.job_sequence) {
    Fail("history", fmt::format("job {} has step {} where {} belongs", change.job,
                                transition.job_sequence(), book.job_sequence));
  }
  if (transition.sequence() <= last_sequence_) {
    Fail("history", fmt::format("sequence {} after {}", transition.sequence(), last_sequence_));
  }
  last_sequence_ = transition.sequence();
  committed_history_.emplace_back(change.job, transition.sequence());
  if (HasEnded(book.state)) {
    Fail("legal", fmt::format("job {} has ended as {} and has a further step", change.job,
                              Text(book.state)));
  }
  if (transition.kind() == v1::TRANSITION_KIND_CANCEL_REQUESTED) {
    book.cancel_requested = true;
    book.is_held = false;  // a canceled job waits for no release
  }
  if (transition.kind() == v1::TRANSITION_KIND_HOLD_REQUESTED) {
    book.is_held = true;
    ++book.holds;
  }
  if (transition.kind() == v1::TRANSITION_KIND_RELEASE_REQUESTED) book.is_held = false;
  if (transition.kind() == v1::TRANSITION_KIND_WITHDRAWAL_REQUESTED) {
    // A run that has begun is preempted.
    if (book.state == v1::JOB_STATE_PENDING) {
      book.is_withdrawn = true;
    } else {
      NotePreemption(change.job, &book);
    }
  }
  if (transition.kind() == v1::TRANSITION_KIND_RETRY) {
    CheckRetryStep(change.job, &book, transition);
  }
  if (transition.run() != 0) CheckRunStep(change.job, &book, transition);
  book.state = transition.job_state();
  if (book.state != v1::JOB_STATE_PENDING || book.cancel_requested) book.is_withdrawn = false;
  if (book.state == v1::JOB_STATE_QUEUED || HasEnded(book.state) || book.cancel_requested)
    book.is_preempted = false;
  // A hold that came too late.
  if (book.state != v1::JOB_STATE_QUEUED && book.state != v1::JOB_STATE_PENDING) {
    book.is_held = false;
  }
}

void Auditor::CheckRunStep(uint64_t job, JobBook* book, const v1::Transition& transition) {
  RunBook& run = book->runs[transition.run()];
  const v1::RunState to = transition.run_state();
  const bool is_restart = transition.kind() == v1::TRANSITION_KIND_RESTARTED;
  if (!MayFollow(run.state, to) && !(is_restart && run.state == to && !HasEnded(to))) {
    Fail("legal", fmt::format("run {} of job {} went from {} to {}", transition.run(), job,
                              Text(run.state), Text(to)));
  }
  if (to == v1::RUN_STATE_ASSIGNED) CheckAssignment(job, *book, transition);
  run.was_canceled = book->cancel_requested;
  // The end of its run decides, which is looked at when the whole end is known.
  run.is_given_up = transition.kind() == v1::TRANSITION_KIND_FAILED_OVER;
  run.is_followed = (to == v1::RUN_STATE_FAILED || run.is_given_up) &&
                    transition.job_state() == v1::JOB_STATE_QUEUED;
  if (run.is_given_up) world_.Count("job failed over");
  if (run.is_followed && !run.is_given_up) world_.Count("another run after a failure");
  const bool comes_back = transition.kind() == v1::TRANSITION_KIND_WITHDRAWN;
  if (comes_back) CheckReturn(job, book, transition);
  run.was_preempted = transition.kind() == v1::TRANSITION_KIND_PREEMPTED;
  if (run.was_preempted) CheckPreempted(job, book, transition);
  if (!run.is_followed && !comes_back && !run.was_preempted &&
      transition.job_state() != JobStateOf(to, book->cancel_requested)) {
    Fail("legal", fmt::format("job {} is {} while its run is {}", job, Text(transition.job_state()),
                              Text(to)));
  }
  if (!transition.has_evidence() || transition.evidence().source() == 0) {
    Fail("legal", fmt::format("job {} has a step without evidence", job));
  }
  run.state = to;
}

void Auditor::CheckReturn(uint64_t job, JobBook* book, const v1::Transition& transition) {
  world_.Count("a run came back");
  ++book->returned;
  book->runs[transition.run()].came_back = true;
  const std::string& key = book->runs[transition.run()].last_put.run_key();
  if (!book->is_withdrawn || transition.run_state() != v1::RUN_STATE_CANCELED ||
      transition.job_state() != v1::JOB_STATE_QUEUED)
    Fail("withdrawal", fmt::format("job {} comes back and was not asked for", job));
  if (const auto truth = runs_.find(key); truth != runs_.end() && !truth->second.starts.empty())
    Fail("withdrawal", fmt::format("run {} came back and had begun", key));
}

void Auditor::Commit(const core::PutWithdrawal& change) {
  const JobBook& book = jobs_[change.job];
  const bool is_preemption =
      change.withdrawal && change.withdrawal->cause() == v1::WITHDRAWAL_CAUSE_PREEMPTION;
  if (is_preemption) {
    CheckPreemption(change);
  } else if (change.withdrawal && book.state != v1::JOB_STATE_PENDING)
    Fail("withdrawal", fmt::format("job {} waits on no cluster and is withdrawn", change.job));
  if (change.returned_runs < book.returned)
    Fail("withdrawal", fmt::format("job {} forgets runs that came back", change.job));
}

void Auditor::Commit(const core::UpdateJob& change) {
  JobBook& book = jobs_[change.id];
  if (book.last_update && HasEnded(book.last_update->state) &&
      book.last_update->state != change.state) {
    Fail("legal", fmt::format("job {} changed after its end", change.id));
  }
  book.last_update = change;
  CheckWait(change.id, &book, change);
}

void Auditor::Commit(const core::PutUsage& change) {
  const RunBook& run = jobs_[change.job].runs[change.run];
  world_.Count("usage after the logs");
  if (!HasEnded(run.last_put.state()) || !(run.logs_complete || run.is_given_up))
    Fail("legal", fmt::format("run {} has its usage too early", run.last_put.run_key()));
  if (change.usage.max_rss_bytes() != TrueUsage(run.last_put.run_key()).max_rss_bytes())
    Fail("usage", fmt::format("run {} has that of another", run.last_put.run_key()));
}

void Auditor::Commit(const core::PutRun& change) {
  const bool has_wrong =
      change.run.has_usage() &&
      change.run.usage().max_rss_bytes() != TrueUsage(change.run.run_key()).max_rss_bytes();
  if (has_wrong) Fail("usage", fmt::format("run {} has that of another", change.run.run_key()));
  JobBook& book = jobs_[change.job];
  CheckPlace(change, book);
  RunBook& run = book.runs[change.run.number()];
  committed_runs_[change.run.run_key()] = {change.job, change.run.number()};
  if (HasEnded(run.last_put.state()) &&
      (run.last_put.state() != change.run.state() ||
       !MessageDifferencer::Equals(run.last_put.exit(), change.run.exit()))) {
    Fail("legal", fmt::format("the end of run {} changed", change.run.run_key()));
  }
  if (run.logs_complete && !change.run.logs_complete()) {
    Fail("legal", fmt::format("the logs of run {} became incomplete", change.run.run_key()));
  }
  if (run.last_put.number() == 0) CheckCordon(change.run);
  const bool ends_now = HasEnded(change.run.state()) && !HasEnded(run.last_put.state());
  run.last_put = change.run;
  run.logs_complete = change.run.logs_complete();
  if (ends_now && change.run.failure().code() == v1::FAILURE_CODE_CLUSTER_LOST) {
    run.is_given_up = true;
    return CheckGivenUp(change.run, book);
  }
  if (ends_now) CheckEnd(change.run.run_key(), change.run, book);
}

// Checks the reported end against the true one.
void Auditor::CheckEnd(const std::string& run_key, const v1::Run& run, const JobBook& book) {
  const TrueRun& truth = runs_[run_key];
  const bool never_there = truth.submissions == 0;
  const auto is = [&](TrueEnd::Kind kind) { return truth.end && truth.end->kind == kind; };
  const bool succeeded = is(TrueEnd::Kind::kExit) && truth.end->code == 0;
  bool good = false;
  switch (run.state()) {
    case v1::RUN_STATE_SUCCEEDED:
      good = succeeded && run.exit().code() == 0 && run.exit().signal() == 0;
      break;
    case v1::RUN_STATE_FAILED:
      good = is(TrueEnd::Kind::kRefused) || is(TrueEnd::Kind::kLeaseEnded) ||
             (is(TrueEnd::Kind::kExit) && truth.end->code != 0 &&
              run.exit().code() == truth.end->code && run.exit().signal() == 0) ||
             (is(TrueEnd::Kind::kSignal) && run.exit().signal() == truth.end->code);
      break;
    case v1::RUN_STATE_CANCELED:
      // A run that failed by itself in the meantime is canceled, too; one that succeeded is not.
      good = is(TrueEnd::Kind::kCanceled) ||
             (book.runs.at(run.number()).came_back && never_there) ||
             (book.runs.at(run.number()).was_preempted && truth.end && !succeeded) ||
             (book.cancel_requested && (never_there || (truth.end && !succeeded)));
      break;
    default:
      good = is(TrueEnd::Kind::kVanished) || truth.is_untraceable;
  }
  if (good) return;
  Fail("exit",
       fmt::format("run {} is reported as {} with code {} and signal {}; in truth {}", run_key,
                   Text(run.state()), run.exit().code(), run.exit().signal(),
                   truth.end ? fmt::format("it ended in way {} with {}",
                                           static_cast<int>(truth.end->kind), truth.end->code)
                             : "it has not ended"));
}

void Auditor::Commit(const core::PutCluster& change) {
  uint64_t& last = agent_epochs_[change.name];
  if (change.agent_epoch < last) Fail("stale", "an agent epoch fell");
  last = change.agent_epoch;
  if (!change.cordon) {
    stored_cordons_.erase(change.name);
    if (cordoned_.contains(change.name))
      Fail("cordon", fmt::format("the cordon of {} is gone", change.name));
  } else {
    stored_cordons_.insert(change.name);
  }
}

void Auditor::Commit(const core::PutBrokerEpoch& change) {
  if (change.epoch <= broker_epoch_) Fail("stale", "a broker epoch did not rise");
  broker_epoch_ = change.epoch;
}

void Auditor::HandledStale(std::string_view what, size_t changes) {
  if (changes == 0) return;
  Fail("stale", fmt::format("{} over an old connection changed {} rows", what, changes));
}

// ---- the clusters

bool Auditor::IsAlive(const std::string& run_key) const {
  const auto committed = committed_runs_.find(run_key);
  if (committed == committed_runs_.end()) return false;
  const JobBook& book = jobs_.at(committed->second.first);
  const auto& [number, latest] = *book.runs.rbegin();
  return !HasEnded(book.state) && !HasEnded(latest.state) && number == committed->second.second;
}

void Auditor::Submitted(const std::string& run_key) {
  TrueRun& run = runs_[run_key];
  if (!IsAlive(run_key) && !WasGivenUp(run_key)) {
    Fail("single start", fmt::format("{} was launched and is no committed, active run", run_key));
  }
  if (run.is_live || !run.starts.empty()) {
    Fail("single start", fmt::format("{} was launched again while it runs or has run", run_key));
  }
  ++run.submissions;
  run.is_live = true;
  run.end.reset();
}

void Auditor::TakenUp(const std::string& run_key) {
  const auto run = committed_runs_.find(run_key);
  if (run == committed_runs_.end() || !canceled_.contains(run->second.first)) return;
  world_.Count("canceled while its agent was down");
  canceled_before_start_.insert(run_key);
}

void Auditor::Launching(const std::string& run_key) {
  if (!canceled_before_start_.contains(run_key)) return;
  Fail("cancel", fmt::format("{} is launched, and was canceled before its agent started", run_key));
}

void Auditor::Started(const std::string& run_key, int restart) {
  if (!CheckAlone(run_key) && !IsAlive(run_key)) {
    Fail("cancel", fmt::format("the command of {} starts after its job has ended", run_key));
  }
  runs_[run_key].is_running = true;
  if (!runs_[run_key].starts.insert(restart).second) {
    Fail("single start", fmt::format("the command of {} started twice", run_key));
  }
}

void Auditor::Ended(const std::string& run_key, TrueEnd end) {
  runs_[run_key].is_live = runs_[run_key].is_running = false;
  runs_[run_key].end = end;
}

void Auditor::LeftNoTrace(const std::string& run_key) { runs_[run_key].is_untraceable = true; }

void Auditor::Forgotten(const std::string& run_key, bool is_live) {
  if (is_live) Fail("conservation", fmt::format("{} was let go while it runs", run_key));
}

// ---- the end

void Auditor::CheckStore(const store::Store& store) {
  for (const auto& [operation, id] : acknowledged_) {
    if (!store.GetJob(store::Scope::All(), id).ok())
      Fail("durable", fmt::format("job {} is gone", id));
  }
  for (const auto& [id, book] : jobs_) {
    const auto job = store.GetJob(store::Scope::All(), id);
    if (!job.ok()) {
      Fail("durable", fmt::format("job {} was committed and is gone", id));
      continue;
    }
    if (!MessageDifferencer::Equals(job->spec(), *book.spec)) {
      Fail("durable", fmt::format("the spec of job {} is another", id));
    }
    const auto stored = store.ListTransitions(store::Scope::All(), {id}, 0, 100'000);
    std::vector<v1::Transition> transitions;
    for (const auto& item : *stored) transitions.push_back(item.transition);
    CheckReplay(*job, transitions);
  }
}

void Auditor::CheckReplay(const v1::Job& job, const std::vector<v1::Transition>& transitions) {
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  bool canceled = false, held = false;
  std::map<uint32_t, v1::RunState> runs;
  uint64_t steps = 0;
  for (const v1::Transition& transition : transitions) {
    state = transition.job_state();
    canceled |= transition.kind() == v1::TRANSITION_KIND_CANCEL_REQUESTED;
    if (transition.kind() == v1::TRANSITION_KIND_HOLD_REQUESTED) held = true;
    if (transition.kind() == v1::TRANSITION_KIND_RELEASE_REQUESTED) held = false;
    if (state != v1::JOB_STATE_QUEUED && state != v1::JOB_STATE_PENDING) held = false;
    if (transition.run() != 0) runs[transition.run()] = transition.run_state();
    if (transition.job_sequence() != ++steps) {
      Fail("history", fmt::format("the history of job {} has a gap", job.id()));
    }
  }
  bool same = state == job.state() && canceled == job.cancel_requested() && held == job.held() &&
              steps == job.job_sequence() && runs.size() == static_cast<size_t>(job.runs_size());
  for (const v1::Run& run : job.runs()) same = same && runs[run.number()] == run.state();
  if (!same) {
    Fail("replay", fmt::format("job {} is stored as {}, its history gives {}", job.id(),
                               Text(job.state()), Text(state)));
  }
}

bool Auditor::AllEnded() const {
  return std::all_of(jobs_.begin(), jobs_.end(),
                     [](const auto& entry) { return HasEnded(entry.second.state); });
}

void Auditor::CheckAfterQuiet(const store::Store& store, size_t live_on_clusters,
                              size_t held_by_agents) {
  CheckStore(store);
  for (const auto& [id, book] : jobs_) {
    if (HasEnded(book.state)) continue;
    Fail(canceled_.contains(id) ? "cancel" : "progress",
         fmt::format("job {} ({}) is still {} long after the faults; its run is {}", id,
                     book.operation, Text(book.state),
                     book.runs.empty() ? "none" : Text(book.runs.rbegin()->second.state)));
  }
  if (live_on_clusters > 0) {
    Fail("conservation", fmt::format("{} runs are left on the clusters", live_on_clusters));
  }
  if (held_by_agents > 0) {
    Fail("conservation", fmt::format("agents still hold {} runs", held_by_agents));
  }
  if (watched_ != committed_history_) {
    Fail("history", fmt::format("a watch saw {} transitions of {}", watched_.size(),
                                committed_history_.size()));
  }
}

}  // namespace muster::sim
