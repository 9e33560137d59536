#include "agents/slurm/call_gate.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "contract/issues.h"
#include "fmt/format.h"
#include "sync/mutex.h"

namespace muster::slurm {
namespace {

// Marks the errors of calls that were not made.
constexpr absl::string_view kNoTurn = "muster/no-turn";

// The time that a warning stays after its cause has ended.
constexpr absl::Duration kWarned = absl::Minutes(10);
// slurmctld's limit can cause no longer interval than this, five times the default one.
constexpr absl::Duration kLongestBackOff = absl::Minutes(1);

bool IsPoll(CallKind kind) { return kind == CallKind::kObserve || kind == CallKind::kOther; }

}  // namespace

CallGate::CallGate(const Limits& limits, absl::Duration submit_patience)
    : submit_patience_(submit_patience),
      polls_{"slurm.max_polls_per_minute", limits.polls},
      calls_of_all_kinds_{"slurm.max_scheduler_calls_per_minute", limits.calls} {}

// Returns the time that a call waits for its turn.
absl::Duration CallGate::BoundOf(CallKind kind) const {
  switch (kind) {
    case CallKind::kEnd:
    case CallKind::kObserve:
      return absl::Minutes(1);
    case CallKind::kSubmit:
      return submit_patience_;
    case CallKind::kOther:
      break;
  }
  return absl::Seconds(30);
}

bool CallGate::HadNoTurn(const absl::Status& status) {
  return status.GetPayload(kNoTurn).has_value();
}

absl::Status CallGate::Enter(const std::string& name, CallKind kind) {
  MutexLock lock(mutex_);
  const absl::Time since = time_.Now();
  for (Limit* limit : {&polls_, &calls_of_all_kinds_}) {
    if (limit == &polls_ && !IsPoll(kind)) continue;
    if (Await(limit, kind, since, &lock)) continue;
    if (limit != &polls_ && IsPoll(kind)) polls_.queue.GiveBack();
    ++limit->given_up;
    given_up_at_ = limit;
    last_given_up_ = time_.Now();
    given_up_until_ = absl::Now() + kWarned;
    absl::Status status = absl::UnavailableError(
        fmt::format("could not ask: {} had no turn within {} s, since more is asked than {} ({}) "
                    "allows",
                    name, absl::ToInt64Seconds(BoundOf(kind)), limit->setting, limit->per_minute));
    status.SetPayload(kNoTurn, absl::Cord());
    return status;
  }
  ++calls_[name];
  return absl::OkStatus();
}

bool CallGate::Await(Limit* limit, CallKind kind, absl::Time since, MutexLock* lock) {
  const absl::Time deadline = since + BoundOf(kind);
  CallQueue& queue = limit->queue;
  const CallQueue::Ticket ticket = queue.Join(kind, since);
  bool may_go = false;
  for (absl::Time now = time_.Now(); !(may_go = queue.MayGo(ticket, now)); now = time_.Now()) {
    if (now >= deadline) {
      queue.Leave(ticket);
      break;
    }
    const absl::Duration wait = std::min(queue.NextChange(now), deadline) - now;
    lock->WaitUntil(changed_, std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(wait));
  }
  // The next one in the row may be able to go, too.
  changed_.notify_all();
  return may_go;
}

void CallGate::OnAnswer(std::string_view words) {
  const MutexLock lock(mutex_);
  const bool is_held_back = BackOff::Says(words);
  back_off_.OnAnswer(is_held_back, time_.Now());
  if (is_held_back) held_back_until_ = absl::Now() + kWarned;
}

absl::Duration CallGate::ObserveInterval(absl::Duration wanted, bool is_awaited) {
  const MutexLock lock(mutex_);
  if (back_off_.factor() > 1)
    wanted = std::max(wanted, std::min(kLongestBackOff, wanted * back_off_.factor()));
  const absl::Time now = time_.Now();
  return std::max({wanted, polls_.queue.ObserveInterval(now, is_awaited),
                   calls_of_all_kinds_.queue.ObserveInterval(now, is_awaited)});
}

std::vector<v1::ClusterIssue> CallGate::Issues() const {
  const MutexLock lock(mutex_);
  const absl::Time now = time_.Now();
  std::vector<v1::ClusterIssue> issues;
  if (now - back_off_.last() < kWarned) {
    issues.push_back(contract::CallsHeldBack(back_off_.count(), calls_of_all_kinds_.per_minute,
                                             held_back_until_));
  }
  if (now - last_given_up_ < kWarned) {
    issues.push_back(contract::CallsWithoutTurn(given_up_at_->given_up, given_up_at_->setting,
                                                given_up_at_->per_minute, given_up_until_));
  }
  return issues;
}

std::map<std::string, uint64_t> CallGate::Calls() const {
  const MutexLock lock(mutex_);
  return calls_;
}

}  // namespace muster::slurm
