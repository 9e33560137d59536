// A stream of messages that a client follows or takes in pieces, whatever carries it: the sender
// asks for the next messages when the client has taken the last ones.
#ifndef MUSTER_BROKER_APP_PULL_SOURCE_H_
#define MUSTER_BROKER_APP_PULL_SOURCE_H_

#include <deque>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "broker/app/watch_hub.h"

namespace muster::broker {

// Owner: one stream. Next and IsDue are never called at the same time.
template <typename Message>
class PullSource {
 public:
  struct Pulled {
    std::deque<Message> messages;
    bool more = false;                         // more can be read at once
    std::optional<absl::Status> final_status;  // ends the stream, after the messages
  };

  virtual ~PullSource() = default;

  // Called once, before the first Next. From now on `stream` is woken when there may be more.
  virtual void Hook(const std::shared_ptr<Watcher>& /*stream*/) {}
  // Forgets the stream that is woken. Called once, after the last Next.
  virtual void Unhook() {}

  // Reads what comes next; bounds its own work and memory. Blocks; call it on a thread that may
  // read the store. An empty result means that there is nothing to read until the stream is woken.
  virtual Pulled Next() = 0;
  // Returns the message to send after a heartbeat's interval without any other.
  virtual std::optional<Message> KeepAlive() { return std::nullopt; }
  // True if the time alone is a reason to call Next.
  virtual bool IsDue() const { return false; }
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_PULL_SOURCE_H_
