// The events that the broker has not acknowledged, and how far they have been sent.
//
// Owner: the agent's core thread.
#ifndef MUSTER_AGENTS_CORE_EVENT_LOG_H_
#define MUSTER_AGENTS_CORE_EVENT_LOG_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/status/status.h"
#include "agents/core/agent_core.h"

namespace muster::agents {

// The contract's bound for one message of events.
inline constexpr int kMaxEventsPerMessage = 1000;
// gRPC refuses messages of more than 4 MiB; this leaves room for the event that crosses the mark.
inline constexpr size_t kMaxEventBytesPerMessage = 2 << 20;

class EventLog {
 public:
  EventLog(uint64_t next_sequence, std::vector<agent::v1::RunEvent> unacknowledged);

  // Gives the event its number and adds it to the changes. Returns the number.
  uint64_t Append(agent::v1::RunEvent event, std::vector<JournalChange>* changes);

  // The broker has everything up to `sequence` on disk. An error: the broker and this journal do
  // not belong together.
  absl::Status Acknowledge(uint64_t sequence, std::vector<JournalChange>* changes);

  // Makes everything that is not acknowledged go out again; for the time after the welcome of a new
  // connection.
  void Rewind() {
    sent_ = acknowledged_;
    bytes_in_flight_ = 0;
  }

  // Adds messages with what has not been sent, as long as at most `max_in_flight` events of
  // `max_bytes` together are unacknowledged; the last of them may go beyond the bytes.
  void Send(int max_in_flight, size_t max_bytes, std::vector<Effect>* effects);

  uint64_t next_sequence() const { return next_; }
  uint64_t acknowledged() const { return acknowledged_; }
  uint64_t sent() const { return sent_; }

  absl::Status CheckInvariants() const;

 private:
  uint64_t next_;
  uint64_t acknowledged_;                   // all up to this one
  uint64_t sent_;                           // on this connection, all up to this one
  size_t bytes_in_flight_ = 0;              // of those that were sent
  std::deque<agent::v1::RunEvent> events_;  // acknowledged_ + 1 ... next_ - 1
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_EVENT_LOG_H_
