// Keeps a lasting connection to the first of several login hosts that can be reached.
//
// One thread owns the connection and everything on it; callers hand it commands and wait. A
// connection that is lost answers the commands that it carried with UNAVAILABLE (nobody knows how
// far they came) and is made again at the next one. After a failure to connect, commands fail at
// once for a while.
#ifndef MUSTER_AGENTS_HOSTS_SSH_LINK_H_
#define MUSTER_AGENTS_HOSTS_SSH_LINK_H_

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/hosts/event.h"
#include "agents/hosts/ssh_call.h"
#include "agents/hosts/ssh_channels.h"
#include "agents/hosts/ssh_config.h"
#include "sync/mutex.h"

namespace muster::hosts {

// Returns the time to the next attempt to connect, from the error of a call that came before it was
// due.
std::optional<absl::Duration> NextAttemptOf(const absl::Status& status);

class SshLink {
 public:
  explicit SshLink(SshConfig config);
  // Every command under way is answered with UNAVAILABLE.
  ~SshLink();
  // Ends it early for those who wait for an answer, who get only UNAVAILABLE from now on.
  // Once.
  void Stop();
  SshLink(const SshLink&) = delete;
  SshLink& operator=(const SshLink&) = delete;

  // ---- any thread

  // Runs a script to its end. DEADLINE_EXCEEDED: it was killed after its time; RESOURCE_EXHAUSTED:
  // it was killed since it wrote too much; UNAVAILABLE: the host could not be reached, or the
  // connection was lost; see NextAttemptOf.
  absl::StatusOr<ExecResult> Exec(ExecRequest request);
  // Runs a script with a talk. `on_finish` gets the answer on the link's thread, or at once if the
  // link is stopped; UNAVAILABLE as above.
  void Start(ExecRequest request, std::function<void(const absl::StatusOr<ExecResult>&)> on_finish);
  // Something was said in a talk.
  void Wake() { wakeup_.Set(); }
  // Connects unless that is done. Besides UNAVAILABLE, errors are FAILED_PRECONDITION (host key,
  // key file, agent) and PERMISSION_DENIED (login refused), which need the operator.
  absl::Status Connect();
  // Returns the host that is connected to, "name:port"; empty if there is none.
  std::string host_in_use() const;

 private:
  using Queue = std::deque<std::shared_ptr<SshCall>>;

  // False: the link is stopped.
  bool Push(const std::shared_ptr<SshCall>& call);
  absl::StatusOr<ExecResult> Wait(const std::shared_ptr<SshCall>& call);
  // True: nobody had taken the call, and nobody will.
  bool Withdraw(const std::shared_ptr<SshCall>& call);

  // ---- the thread's own
  void Loop();
  bool WantsWork();
  void WaitForWork();
  // Returns whether there is a session, after an attempt to make one if that is due.
  bool EnsureSession();
  absl::StatusOr<std::unique_ptr<SshSession>> OpenAny();
  void StartCalls();
  void GiveBackRefused();
  void DropSession(const absl::Status& fault);
  void FailQueue(const absl::Status& status);

  const SshConfig config_;
  Event wakeup_;
  Event stop_;  // never cleared

  mutable Mutex mutex_;
  // Lives as long as there are threads that wait for a call.
  Queue queue_ ABSL_GUARDED_BY(mutex_);
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::string host_in_use_ ABSL_GUARDED_BY(mutex_);

  // The thread's own.
  std::unique_ptr<SshChannels> channels_;
  absl::Status last_error_;
  absl::Duration next_attempt_ = -absl::InfiniteDuration();
  absl::Duration backoff_;

  std::thread thread_;  // last: it uses all the others
};

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_SSH_LINK_H_
