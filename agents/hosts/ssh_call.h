// A command that a caller waits for while the thread of SshLink carries it out.
#ifndef MUSTER_AGENTS_HOSTS_SSH_CALL_H_
#define MUSTER_AGENTS_HOSTS_SSH_CALL_H_

#include <condition_variable>
#include <functional>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/hosts/ssh_exec.h"
#include "agents/hosts/steady_now.h"
#include "sync/mutex.h"

namespace muster::hosts {

// Any thread may use it.
class SshCall {
 public:
  // A call without a request runs nothing; it only wants the connection.
  explicit SshCall(std::optional<ExecRequest> request, absl::Duration timeout)
      : request_(std::move(request)), deadline_(SteadyNow() + timeout) {}
  // Makes a call that nobody waits for: `on_finish` gets the answer, on the thread of SshLink.
  SshCall(ExecRequest request, std::function<void(const absl::StatusOr<ExecResult>&)> on_finish)
      : request_(std::move(request)),
        deadline_(absl::InfiniteDuration()),
        on_finish_(std::move(on_finish)) {}

  const std::optional<ExecRequest>& request() const { return request_; }
  // Returns the deadline in the time of SteadyNow.
  absl::Duration deadline() const { return deadline_; }

  // The first answer counts.
  void Finish(absl::StatusOr<ExecResult> result) {
    if (on_finish_ != nullptr) return std::exchange(on_finish_, nullptr)(result);
    {
      const MutexLock lock(mutex_);
      if (!result_.has_value()) result_ = std::move(result);
    }
    finished_.notify_all();
  }
  bool WaitUntilDeadline() {
    MutexLock lock(mutex_);
    const auto due =
        std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(deadline_ - SteadyNow());
    while (!result_.has_value() && lock.WaitUntil(finished_, due)) {
    }
    return result_.has_value();
  }
  // Waits without a limit of its own, because whoever has taken the call answers it.
  absl::StatusOr<ExecResult> Take() {
    MutexLock lock(mutex_);
    while (!result_.has_value()) lock.Wait(finished_);
    return *std::move(result_);
  }

 private:
  const std::optional<ExecRequest> request_;
  const absl::Duration deadline_;
  std::function<void(const absl::StatusOr<ExecResult>&)> on_finish_;
  Mutex mutex_;
  std::condition_variable finished_;
  std::optional<absl::StatusOr<ExecResult>> result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_SSH_CALL_H_
