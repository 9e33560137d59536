// The questions that one agent has been sent and has not answered.
//
// Any thread may use it. Each `done` is called once, without locks held: with the answer, or with
// an error.
#ifndef MUSTER_BROKER_RPC_PENDING_QUESTIONS_H_
#define MUSTER_BROKER_RPC_PENDING_QUESTIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/engine/agent_peer.h"
#include "broker/rpc/stream_registry.h"
#include "muster/agent/v1/agent_link.pb.h"
#include "sync/mutex.h"

namespace muster::broker {

// Bound for one agent. People ask these questions, few at a time; an agent takes about as many.
inline constexpr size_t kMaxPendingQuestions = 32;
// The default limit of clients (4 MiB), less the rest of the message.
inline constexpr size_t kMaxAnswerBytes = 3 << 20;

class PendingQuestions {
 public:
  using Done = AgentPeer::Answered;

  // Returns the id under which to ask; nothing if `done` was called with an error.
  std::optional<uint64_t> Add(SteadyClock::time_point deadline, Done done);
  // Ends a question that could not be sent.
  void Fail(uint64_t id, const absl::Status& status);
  // Hands an answer on; it is dropped if nobody waits for it any more.
  void Answer(agent::v1::AgentAnswer answer);
  // Fails questions whose time is over.
  void Expire(SteadyClock::time_point now);
  // Fails all questions that wait, and all that come.
  void End();

 private:
  struct Pending {
    SteadyClock::time_point deadline;
    Done done;
  };
  std::optional<Pending> Take(uint64_t id);

  Mutex mutex_;
  std::map<uint64_t, Pending> pending_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_PENDING_QUESTIONS_H_
