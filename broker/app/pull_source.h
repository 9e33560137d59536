// What a client follows or takes in pieces, apart from how it is sent: whoever sends it asks for
// the next messages when the client has taken the last ones.
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
    bool more = false;                         // there is more to read at once
    std::optional<absl::Status> final_status;  // the stream ends with it after the messages
  };

  virtual ~PullSource() = default;

  // Called once, before the first Next. From here on `stream` is woken when there may be more.
  virtual void Hook(const std::shared_ptr<Watcher>& /*stream*/) {}
  // Lets go of what wakes the stream. Called once, after the last Next.
  virtual void Unhook() {}

  // Reads what comes next; bounds its own work and memory. Blocks; on a thread that may read the
  // store. Nothing at all: there is nothing to read until the stream is woken.
  virtual Pulled Next() = 0;
  // What to say when there has been nothing to say for a heartbeat's interval.
  virtual std::optional<Message> KeepAlive() { return std::nullopt; }
  // Whether time alone is a reason to call Next.
  virtual bool IsDue() const { return false; }
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_PULL_SOURCE_H_
