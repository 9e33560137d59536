// The questions that one agent has been sent and has not answered.
//
// Any thread. Each `done` is called once: with the answer, or with an error, and without locks
// held.
#ifndef MUSTER_BROKER_RPC_PENDING_QUESTIONS_H_
#define MUSTER_BROKER_RPC_PENDING_QUESTIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/app/asked_agent.h"
#include "broker/rpc/stream_registry.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::broker {

// Of one agent. They are people's questions, few at a time; an agent takes about as many.
inline constexpr size_t kMaxPendingQuestions = 32;
// What clients receive by default (4 MiB), less what is around the answer.
inline constexpr size_t kMaxAnswerBytes = 3 << 20;

class PendingQuestions {
 public:
  using Done = AskedAgent::Done;

  // The id under which to ask; nothing if `done` was called with why not.
  std::optional<uint64_t> Add(SteadyClock::time_point deadline, Done done);
  // The question could not be sent.
  void Fail(uint64_t id, const absl::Status& status);
  // An answer that nobody waits for any more is dropped.
  void Answer(agent::v1::AgentAnswer answer);
  // Fails those whose time is over.
  void Expire(SteadyClock::time_point now);
  // Fails all that wait, and all that come.
  void End();

 private:
  struct Pending {
    SteadyClock::time_point deadline;
    Done done;
  };
  std::optional<Pending> Take(uint64_t id);

  std::mutex mutex_;
  std::map<uint64_t, Pending> pending_;
  uint64_t next_id_ = 1;
  bool ended_ = false;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_PENDING_QUESTIONS_H_
