// Keeps a lasting channel to a muster-supervisor on a host that serves the agent: a command and its
// answer cost a round trip there, and neither a channel of SSH nor a shell of their own.
#ifndef MUSTER_AGENTS_MACHINES_REMOTE_HOST_CHANNEL_H_
#define MUSTER_AGENTS_MACHINES_REMOTE_HOST_CHANNEL_H_

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/hosts/ssh_host.h"
#include "agents/machines/host_frames.h"
#include "sync/mutex.h"

namespace muster::machines {

// Any thread may use it.
class HostChannel {
 public:
  // `argv` starts the supervisor there. The host outlives the channel. INVALID_ARGUMENT: it cannot
  // be run anywhere; whether it runs, the first command says.
  static absl::StatusOr<std::unique_ptr<HostChannel>> Open(hosts::SshHost* ssh,
                                                           std::vector<std::string> argv);

  // Carries out a command of the supervisor, beside others. UNAVAILABLE: the channel has ended, or
  // the host has not answered within `patience` and a little more; it may have run.
  absl::StatusOr<HostAnswer> Run(std::vector<std::string> words, std::string input,
                                 absl::Duration patience);
  // Tells it something to which it gives no answer.
  void Tell(std::vector<std::string> words);
  // Returns whether a command can still be sent.
  bool is_open() const;

 private:
  HostChannel() = default;
  void Hear(std::string_view bytes);
  void End(const absl::Status& why);

  mutable Mutex mutex_;
  std::condition_variable changed_;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);  // not OK: why nothing more is heard
  int64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  // Those that somebody waits for, by id.
  std::map<int64_t, std::optional<HostAnswer>> commands_ ABSL_GUARDED_BY(mutex_);

  FrameReader frames_;                    // the connection's thread has it
  std::unique_ptr<hosts::SshTalk> talk_;  // last: nobody is called once it is gone
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_REMOTE_HOST_CHANNEL_H_
