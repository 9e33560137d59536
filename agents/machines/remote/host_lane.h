// Leads all reads to one host: a thread of its own asks them one after the other. A caller with
// several hosts asks them at once, and gives up a slow one without leaving it behind.
#ifndef MUSTER_AGENTS_MACHINES_REMOTE_HOST_LANE_H_
#define MUSTER_AGENTS_MACHINES_REMOTE_HOST_LANE_H_

#include <any>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "agents/hosts/host.h"
#include "sync/mutex.h"

namespace muster::machines {

// All methods from any thread.
class HostLane {
 public:
  using Ask = std::function<std::any(hosts::Host&)>;
  // Is a question to the host. Only `answer` is for the caller, once Await has said so.
  struct Call {
    std::string question;
    Ask ask;
    std::any answer;
    bool is_done = false;
  };

  // The host outlives Stop.
  explicit HostLane(hosts::Host* host);
  ~HostLane() { Stop(); }

  // The same question is the same text. Null: an earlier call is under way for longer than its
  // caller has waited, or the lane is stopped. Await comes next, by the same thread.
  std::shared_ptr<Call> Begin(std::string question, Ask ask);
  // Returns whether it was answered by then. A call that is under way goes on, and its answer is
  // there when the question is asked again as the next one: so a slow host is read at its own pace.
  bool Await(const std::shared_ptr<Call>& call, std::chrono::steady_clock::time_point deadline);

  // Call it only once the host answers every call at once.
  void Stop();

 private:
  void Loop();

  hosts::Host& host_;
  Mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // At most one of each thread that asks.
  std::deque<std::shared_ptr<Call>> waiting_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Call> late_ ABSL_GUARDED_BY(mutex_);  // nobody waits for it any more

  std::thread thread_;
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_REMOTE_HOST_LANE_H_
