#include "broker/rpc/pending_questions.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "contract/errors.h"
#include "rpc/status_message.h"
#include "sync/mutex.h"

namespace muster::broker {
namespace {

// A question takes an agent some seconds.
constexpr absl::Duration kRetryAfter = absl::Seconds(5);
// An agent that has lost its connection tries to come back at once.
constexpr absl::Duration kReconnectAfter = absl::Seconds(1);

absl::Status AgentLeft() {
  return contract::RetryableError(absl::StatusCode::kUnavailable, "AGENT_LEFT",
                                  "the agent's connection ended before it answered; ask again",
                                  kReconnectAfter);
}

// Returns the agent's answer, or its error.
absl::StatusOr<agent::v1::AgentAnswer> Opened(agent::v1::AgentAnswer answer) {
  const size_t bytes = answer.ByteSizeLong();
  if (bytes > kMaxAnswerBytes) {
    return contract::Error(
        absl::StatusCode::kResourceExhausted, "ANSWER_TOO_LARGE",
        fmt::format("the agent's answer has {} bytes; the most is {}", bytes, kMaxAnswerBytes));
  }
  if (answer.error().code() == 0) return answer;
  return rpc::FromMessage(answer.error());
}

}  // namespace

std::optional<uint64_t> PendingQuestions::Add(SteadyClock::time_point deadline, Done done) {
  absl::Status refusal;
  {
    const MutexLock lock(mutex_);
    if (ended_) {
      refusal = AgentLeft();
    } else if (pending_.size() >= kMaxPendingQuestions) {
      refusal = contract::RetryableError(
          absl::StatusCode::kResourceExhausted, "TOO_MANY_QUESTIONS",
          fmt::format("{} questions wait for the agent's answer already; ask again later",
                      pending_.size()),
          kRetryAfter);
    } else {
      pending_.emplace(next_id_, Pending{deadline, std::move(done)});
      return next_id_++;
    }
  }
  done(std::move(refusal));
  return std::nullopt;
}

void PendingQuestions::Fail(uint64_t id, const absl::Status& status) {
  if (std::optional<Pending> pending = Take(id)) pending->done(status);
}

void PendingQuestions::Answer(agent::v1::AgentAnswer answer) {
  if (std::optional<Pending> pending = Take(answer.id())) pending->done(Opened(std::move(answer)));
}

void PendingQuestions::Expire(SteadyClock::time_point now) {
  std::vector<Pending> over;
  {
    const MutexLock lock(mutex_);
    for (auto it = pending_.begin(); it != pending_.end();) {
      if (it->second.deadline > now) {
        ++it;
        continue;
      }
      over.push_back(std::move(it->second));
      it = pending_.erase(it);
    }
  }
  for (Pending& pending : over) {
    pending.done(contract::Error(absl::StatusCode::kDeadlineExceeded, "AGENT_SILENT",
                                 "the agent did not answer in time"));
  }
}

void PendingQuestions::End() {
  std::map<uint64_t, Pending> left;
  {
    const MutexLock lock(mutex_);
    ended_ = true;
    left.swap(pending_);
  }
  for (auto& [id, pending] : left) pending.done(AgentLeft());
}

std::optional<PendingQuestions::Pending> PendingQuestions::Take(uint64_t id) {
  const MutexLock lock(mutex_);
  auto node = pending_.extract(id);
  if (node.empty()) return std::nullopt;
  return std::move(node.mapped());
}

}  // namespace muster::broker
