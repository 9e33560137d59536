// The inputs that the agent's core thread has been given and has not handled yet.
//
// Any thread posts, the core thread takes. It is bounded by its writers: a link hands over so many
// messages and no more until they are handled, every run has one call under way at most, questions
// are few (kMaxQuestions), and a wake is only a flag.
#ifndef MUSTER_AGENTS_CORE_INBOX_H_
#define MUSTER_AGENTS_CORE_INBOX_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/core/agent_core.h"
#include "sync/mutex.h"

namespace muster::agents {

// Carries a message of the link with this number; those of earlier links are stale.
struct FromBroker {
  uint64_t link = 0;
  agent::v1::ConnectResponse message;
};
struct ControlLinkEnded {
  uint64_t link = 0;
  absl::Status status;
};
struct ObserveDone {
  Observed observed;
};
struct EndsDone {
  EndsRead read;
};
struct InventoryDone {
  absl::StatusOr<v1::Inventory> inventory;
};
// Launched, LookedUp, CancelAsked, HoldAsked, LogsShipped, UsageRead or Forgotten.
struct CallDone {
  Input input;
};
// Answers the question that the link `link` asked.
struct QuestionAnswered {
  uint64_t link = 0;
  agent::v1::AgentAnswer answer;
};
using Message = std::variant<FromBroker, ControlLinkEnded, ObserveDone, EndsDone, InventoryDone,
                             CallDone, QuestionAnswered>;

class Inbox {
 public:
  struct Content {
    std::vector<Message> messages;
    bool woken = false;     // the backend asks for an observation
    bool stopping = false;  // stays set
  };

  void Post(Message message) {
    const MutexLock lock(mutex_);
    content_.messages.push_back(std::move(message));
    changed_.notify_one();
  }
  void Wake() {
    const MutexLock lock(mutex_);
    content_.woken = true;
    changed_.notify_one();
  }
  void Stop() {
    const MutexLock lock(mutex_);
    content_.stopping = true;
    changed_.notify_all();
  }

  // Waits until there is something or the time is over, and takes all there is.
  Content Take(absl::Duration patience) {
    MutexLock lock(mutex_);
    const auto due = std::chrono::steady_clock::now() + absl::ToChronoMicroseconds(patience);
    while (content_.messages.empty() && !content_.woken && !content_.stopping) {
      if (!lock.WaitUntil(changed_, due)) break;
    }
    Content taken = std::move(content_);
    content_ = {};
    content_.stopping = taken.stopping;
    return taken;
  }
  // Waits for a while, or until Stop. True: it is time to end.
  bool SleepUnlessStopped(absl::Duration time) {
    MutexLock lock(mutex_);
    const auto due = std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(time);
    while (!content_.stopping && lock.WaitUntil(changed_, due)) {
    }
    return content_.stopping;
  }

 private:
  Mutex mutex_;
  std::condition_variable changed_;
  Content content_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_INBOX_H_
