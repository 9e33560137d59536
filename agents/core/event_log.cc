#include "agents/core/event_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace muster::agents {

EventLog::EventLog(uint64_t next_sequence, std::vector<agent::v1::RunEvent> unacknowledged)
    : next_(next_sequence),
      acknowledged_(next_sequence - 1 - unacknowledged.size()),
      sent_(acknowledged_),
      events_(std::make_move_iterator(unacknowledged.begin()),
              std::make_move_iterator(unacknowledged.end())) {}

uint64_t EventLog::Append(agent::v1::RunEvent event, std::vector<JournalChange>* changes) {
  event.set_sequence(next_++);
  changes->push_back(PutEvent{event});
  events_.push_back(std::move(event));
  return events_.back().sequence();
}

absl::Status EventLog::Acknowledge(uint64_t sequence, std::vector<JournalChange>* changes) {
  if (sequence >= next_) {
    return absl::DataLossError(
        fmt::format("the broker has event {} of this agent's journal, whose last is {}: the "
                    "journal is older than what the broker "
                    "knows, probably restored from a copy. Move the journal away and start the "
                    "agent again: it then looks up every "
                    "active run",
                    sequence, next_ - 1));
  }
  if (sequence <= acknowledged_) return absl::OkStatus();  // acknowledged before
  changes->push_back(DeleteEventsUpTo{sequence});
  for (uint64_t i = acknowledged_; i < std::min(sequence, sent_); ++i) {
    bytes_in_flight_ -= events_[i - acknowledged_].ByteSizeLong();
  }
  events_.erase(events_.begin(),
                events_.begin() + static_cast<std::ptrdiff_t>(sequence - acknowledged_));
  acknowledged_ = sequence;
  sent_ = std::max(sent_, sequence);
  return absl::OkStatus();
}

void EventLog::Send(int max_in_flight, size_t max_bytes, std::vector<Effect>* effects) {
  const uint64_t last = std::min(next_ - 1, acknowledged_ + static_cast<uint64_t>(max_in_flight));
  while (sent_ < last && bytes_in_flight_ < max_bytes) {
    agent::v1::ConnectRequest message;
    agent::v1::RunEvents* batch = message.mutable_events();
    size_t bytes = 0;
    while (sent_ < last && batch->events_size() < kMaxEventsPerMessage &&
           bytes < kMaxEventBytesPerMessage && bytes_in_flight_ < max_bytes) {
      const agent::v1::RunEvent& event = events_[sent_ - acknowledged_];
      const size_t size = event.ByteSizeLong();
      bytes += size;
      bytes_in_flight_ += size;
      *batch->add_events() = event;
      ++sent_;
    }
    effects->push_back(SendToBroker{std::move(message)});
  }
}

absl::Status EventLog::CheckInvariants() const {
  if (acknowledged_ + events_.size() + 1 != next_) {
    return absl::InternalError(fmt::format("events: {} acknowledged, {} kept, next is {}",
                                           acknowledged_, events_.size(), next_));
  }
  if (sent_ < acknowledged_ || sent_ >= next_) {
    return absl::InternalError(fmt::format(
        "events: sent up to {}, acknowledged up to {}, next is {}", sent_, acknowledged_, next_));
  }
  for (size_t i = 0; i < events_.size(); ++i) {
    if (events_[i].sequence() != acknowledged_ + 1 + i) {
      return absl::InternalError(fmt::format("events: number {} where {} belongs",
                                             events_[i].sequence(), acknowledged_ + 1 + i));
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::agents
