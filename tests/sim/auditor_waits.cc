// Holds the auditor's knowledge of jobs that wait: for another run, for their release, and for
// other jobs.
#include <algorithm>

#include "contract/states.h"
#include "fmt/format.h"
#include "tests/sim/auditor.h"

namespace muster::sim {
namespace {

absl::Time TimeOf(const v1::Transition& transition) {
  return absl::FromUnixSeconds(transition.time().seconds()) +
         absl::Nanoseconds(transition.time().nanos());
}

// A decision is committed within this time.
constexpr absl::Duration kLongestCommit = absl::Seconds(1);

// Judges an outcome by its meaning, apart from the contract's code.
bool IsMet(v1::JobState end, v1::JobOutcome needed) {
  if (end < v1::JOB_STATE_SUCCEEDED) return false;
  return needed == v1::JOB_OUTCOME_ENDED ||
         (needed == v1::JOB_OUTCOME_FAILED) == (end != v1::JOB_STATE_SUCCEEDED);
}

uint32_t MaxRuns(const v1::RetryPolicy& policy) {
  return policy.max_runs() > 0 ? policy.max_runs() : 11;
}

}  // namespace

void Auditor::HoldAcknowledged(uint64_t job) {
  const JobBook& book = jobs_[job];
  if (book.holds == 0) {
    Fail("hold", fmt::format("the hold of job {} was acknowledged and is not committed", job));
  }
}

void Auditor::ReleaseAcknowledged(uint64_t job) {
  if (jobs_[job].is_held) {
    Fail("hold", fmt::format("the release of job {} was acknowledged and is not committed", job));
  }
}

void Auditor::ClockJumped(absl::Duration by) {
  last_clock_jump_ = world_.loop.now();
  // The earlier of both times counts, since the broker may take the jump into account or die before
  // it can:
  for (auto& [id, book] : jobs_) {
    if (book.wait_ends) *book.wait_ends += std::min(by, absl::ZeroDuration());
  }
}

void Auditor::CheckRetryStep(uint64_t job, JobBook* book, const v1::Transition& transition) {
  if (book->runs.empty() || !book->runs.rbegin()->second.is_followed) {
    return Fail("retry", fmt::format("job {} goes back to the queue after no failed run", job));
  }
  // The policy's arithmetic, apart from the contract's.
  const v1::RetryPolicy& policy = book->spec->retry();
  int64_t seconds = policy.has_backoff() ? policy.backoff().seconds() : 10;
  const uint32_t latest = book->runs.rbegin()->first;
  const uint32_t counted = latest - CountGivenUp(*book, latest) - book->returned;
  for (uint32_t run = 1; run < counted && seconds < 3600; ++run) seconds *= 2;
  book->wait_ends = TimeOf(transition) + absl::Seconds(std::min<int64_t>(seconds, 3600));
  book->wait_begins = world_.loop.now() - kLongestCommit;
}

void Auditor::CheckAssignment(uint64_t job, const JobBook& book, const v1::Transition& transition) {
  const uint32_t max_runs = MaxRuns(book.spec->retry());
  if (transition.run() - CountGivenUp(book, transition.run()) - book.returned > max_runs) {
    Fail("retry", fmt::format("job {} gets run {} of {}", job, transition.run(), max_runs));
  }
  if (book.is_held) Fail("hold", fmt::format("job {} is held and gets a run", job));
  for (const v1::JobDependency& one : book.spec->depends_on()) {
    const auto other = jobs_.find(one.job_id());
    if (other != jobs_.end() && IsMet(other->second.state, one.outcome())) continue;
    Fail("dependency",
         fmt::format("job {} gets a run before the end of job {}", job, one.job_id()));
  }
  const absl::Time time = TimeOf(transition);
  if (book.wait_ends && time < *book.wait_ends) {
    Fail("retry", fmt::format("job {} gets run {} {} before its time", job, transition.run(),
                              absl::FormatDuration(*book.wait_ends - time)));
  }
}

uint64_t Auditor::FailedDependency(const JobBook& book) const {
  for (const v1::JobDependency& one : book.spec->depends_on()) {
    const v1::JobState state = jobs_.at(one.job_id()).state;
    if (state >= v1::JOB_STATE_SUCCEEDED && !IsMet(state, one.outcome())) return one.job_id();
  }
  return 0;
}

void Auditor::CheckDependents() {
  for (auto it = dependents_.begin(); it != dependents_.end();) {
    const JobBook& book = jobs_.at(*it);
    const uint64_t failed = FailedDependency(book);
    const bool has_failed = book.state == v1::JOB_STATE_FAILED && book.runs.empty();
    if (book.state == v1::JOB_STATE_QUEUED && failed != 0) {
      Fail("dependency", fmt::format("job {} still waits for job {}", *it, failed));
    } else if (has_failed && failed == 0) {
      Fail("dependency", fmt::format("job {} failed without a run or a reason", *it));
    } else if (has_failed) {
      world_.Count("job that failed with another");
    }
    const bool is_done = book.state != v1::JOB_STATE_QUEUED || !book.runs.empty();
    it = is_done ? dependents_.erase(it) : std::next(it);
  }
}

void Auditor::CheckPlace(const core::PutRun& change, const JobBook& book) {
  const bool is_picky = book.spec != nullptr && book.spec->project() == kPickyProject;
  if (!is_picky || change.run.cluster() == kPickyCluster) return;
  Fail("places", fmt::format("run {} is on {}, which its project may not use", change.run.run_key(),
                             change.run.cluster()));
}

void Auditor::CordonAcknowledged(const std::string& cluster) {
  cordoned_.insert(cluster);
  if (!stored_cordons_.contains(cluster))
    Fail("cordon", fmt::format("the cordon of {} is acknowledged and not stored", cluster));
}

void Auditor::CheckCordon(const v1::Run& run) {
  if (!stored_cordons_.contains(run.cluster()) && !cordoned_.contains(run.cluster())) return;
  Fail("cordon",
       fmt::format("run {} is new on {}, which is cordoned", run.run_key(), run.cluster()));
}

void Auditor::CheckWait(uint64_t job, JobBook* book, const core::UpdateJob& update) {
  if (!update.retry_time || !book->wait_ends || *update.retry_time == *book->wait_ends) return;
  // The rest of a wait stays the same when the clock is set.
  if (last_clock_jump_ < book->wait_begins) {
    Fail("retry", fmt::format("the time of job {}'s next run is off by {}", job,
                              absl::FormatDuration(*update.retry_time - *book->wait_ends)));
  }
  book->wait_ends = update.retry_time;
}

void Auditor::CheckFollowed(const std::string& run_key, const RunBook& run, const JobBook& book) {
  const TrueRun& truth = runs_[run_key];
  if (!truth.end) return;  // an end that was made up; see CheckEnd
  if (run.was_preempted) return;
  const uint32_t max_runs = MaxRuns(book.spec->retry());
  const TrueEnd::Fault fault = truth.end->fault;
  const bool is_worth_it =
      fault == TrueEnd::Fault::kCluster ||
      (fault == TrueEnd::Fault::kPreemption && book.spec->retry().on_preemption());
  const uint32_t number = run.last_put.number();
  const uint32_t counted = number - CountGivenUp(book, number) - book.returned;
  const bool should = is_worth_it && !run.was_canceled && counted < max_runs;
  if (should == run.is_followed) return;
  Fail("retry", fmt::format("{} ended in way {} with fault {}, its job {} another run", run_key,
                            static_cast<int>(truth.end->kind), static_cast<int>(fault),
                            run.is_followed ? "gets" : "does not get"));
}

void Auditor::CheckQuota() {
  const auto active = std::count_if(jobs_.begin(), jobs_.end(), [](const auto& entry) {
    const JobBook& book = entry.second;
    const bool is_picky = book.spec != nullptr && book.spec->project() == kPickyProject;
    return is_picky && book.state != v1::JOB_STATE_QUEUED && !contract::IsTerminal(book.state);
  });
  if (active > kPickyRuns) {
    Fail("quotas", fmt::format("project {} has {} active runs of at most {}", kPickyProject, active,
                               kPickyRuns));
  }
}

}  // namespace muster::sim
