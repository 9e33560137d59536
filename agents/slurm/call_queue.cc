#include "agents/slurm/call_queue.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace muster::slurm {
namespace {

// A look at the queue that has waited so long is as urgent as a submission that came when it did,
// for a long row of submissions would otherwise hide how all other runs fare; and both have every
// other turn while there are cancels and holds, for a long row of those would otherwise let nothing
// start.
constexpr absl::Duration kPatience = absl::Seconds(20);
// Two looks at the queue are at most this far apart; with one call a minute they come as rarely as
// this.
constexpr absl::Duration kLongestInterval = absl::Minutes(1);
// Looks at the queue get this part of the calls when no token is left, because users wait to see
// their jobs.
constexpr double kObserveShare = 0.25;
// A look at the queue, and a question about the jobs that have left it.
constexpr double kLookTokens = 2;
// Sixteen times the interval is over a minute at the default one; users want to see more than that.
constexpr int kMaxFactor = 16;

}  // namespace

// Less than `refill_` tokens come in less than a minute, so at most `per_minute_` go in it with
// those of a full bucket.
CallQueue::CallQueue(uint32_t per_minute)
    : per_minute_(per_minute),
      burst_(std::max<uint32_t>(1, per_minute / 4)),
      refill_(per_minute + 1 - burst_),
      tokens_(burst_) {}

void CallQueue::Refill(absl::Time now) {
  if (now > refilled_ && refilled_ != absl::InfinitePast()) {
    const double minutes = absl::ToDoubleMinutes(now - refilled_);
    tokens_ = std::min<double>(burst_, tokens_ + minutes * refill_);
  }
  refilled_ = std::max(refilled_, now);
}

CallQueue::Ticket CallQueue::Join(CallKind kind, absl::Time since) {
  waiting_.push_back({++last_ticket_, kind, since});
  return last_ticket_;
}

const CallQueue::Waiting* CallQueue::Next(absl::Time now) const {
  const auto is_old = [&](const Waiting& one) {
    const bool ages = one.kind == CallKind::kSubmit || one.kind == CallKind::kObserve;
    return ages && now - one.since >= kPatience;
  };
  if (was_end_) {
    const auto old = std::find_if(waiting_.begin(), waiting_.end(), is_old);
    if (old != waiting_.end()) return &*old;
  }
  const auto urgency = [&](const Waiting& one) {
    return is_old(one) ? CallKind::kSubmit : one.kind;
  };
  // The first that came wins among equals.
  const auto next =
      std::min_element(waiting_.begin(), waiting_.end(),
                       [&](const Waiting& a, const Waiting& b) { return urgency(a) < urgency(b); });
  return next == waiting_.end() ? nullptr : &*next;
}

bool CallQueue::MayGo(Ticket ticket, absl::Time now) {
  Refill(now);
  if (per_minute_ > 0) {
    const Waiting* next = Next(now);
    if (tokens_ < 1 || next == nullptr || next->ticket != ticket) return false;
    tokens_ -= 1;
    was_end_ = next->kind == CallKind::kEnd;
  }
  Leave(ticket);
  return true;
}

void CallQueue::GiveBack() { tokens_ = std::min<double>(burst_, tokens_ + 1); }

void CallQueue::Leave(Ticket ticket) {
  waiting_.remove_if([&](const Waiting& one) { return one.ticket == ticket; });
}

absl::Time CallQueue::NextChange(absl::Time now) {
  Refill(now);
  // A token's part at least, so that a rounding down is no busy loop.
  const double missing = std::max(0.01, 1 - tokens_);
  return now + absl::Minutes(missing / refill_);
}

absl::Duration CallQueue::ObserveInterval(absl::Time now, bool is_awaited) {
  if (per_minute_ == 0) return absl::ZeroDuration();
  Refill(now);
  if (tokens_ >= burst_) return absl::ZeroDuration();
  if (is_awaited)
    return absl::Minutes(std::max(0.0, std::min<double>(kLookTokens, burst_) - tokens_) / refill_);
  return kLongestInterval /
         std::max({1.0, per_minute_ * kObserveShare, per_minute_ * tokens_ / burst_});
}

bool BackOff::Says(std::string_view words) {
  constexpr std::array<std::string_view, 5> kWords = {"rpc limit exceeded", "rpc rate limit",
                                                      "rate limited", "rate limit exceeded",
                                                      "communications backoff"};
  std::string lower(words);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view one) { return lower.find(one) != std::string::npos; });
}

void BackOff::OnAnswer(bool held_back, absl::Time now) {
  factor_ = held_back ? std::min(kMaxFactor, factor_ * 2) : std::max(1, factor_ / 2);
  if (!held_back) return;
  ++count_;
  last_ = now;
}

}  // namespace muster::slurm
