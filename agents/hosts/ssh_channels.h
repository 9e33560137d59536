// Runs all commands of one session: their channels, their time-outs, and the session's signs of
// life.
//
// Owner: the thread of SshLink. Nothing here waits.
#ifndef MUSTER_AGENTS_HOSTS_SSH_CHANNELS_H_
#define MUSTER_AGENTS_HOSTS_SSH_CHANNELS_H_

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agents/hosts/ssh_call.h"
#include "agents/hosts/ssh_config.h"
#include "agents/hosts/ssh_exec.h"
#include "agents/hosts/ssh_session.h"

namespace muster::hosts {

class SshChannels {
 public:
  // `config` must outlive this object.
  SshChannels(const SshConfig* config, std::unique_ptr<SshSession> session);

  // Returns whether one more call may be started.
  bool has_room() const;
  void Start(std::shared_ptr<SshCall> call);
  // Goes on with everything as far as it can. An error: the session is dead; Fail and be done.
  absl::Status Step();
  // The session is dead: every call is answered.
  void Fail(const absl::Status& fault);
  // Calls that the host had no channel for, the oldest first; surely nothing of them was started.
  std::vector<std::shared_ptr<SshCall>> TakeRefused();

  // Step wants to be called at this time (of SteadyNow) even if the socket is silent.
  absl::Duration NextTime() const;
  // Returns the events that poll(2) is to wait for on the session's socket.
  short poll_events() const;
  const SshSession& session() const { return *session_; }

 private:
  // kKill and kProbe serve another channel's call, kPing the session.
  enum class Purpose { kCall, kKill, kProbe, kPing };
  struct Channel {
    Channel(Purpose purpose, uint64_t number, SshSession* session, std::shared_ptr<SshCall> call);

    const Purpose purpose;
    const uint64_t number;
    const std::shared_ptr<SshCall> call;  // null for a ping
    SshExec exec;
    uint64_t target = 0;  // the channel that is served
    absl::Duration start;
    absl::Duration next_probe;
    absl::Duration probe_interval;
    // The error for the caller once the program is killed; OK: nothing to kill.
    absl::Status verdict;
    absl::Duration next_kill;
    absl::Duration kill_deadline;
    bool is_answered = false;
  };
  using Channels = std::list<Channel>;

  Channel& Add(Purpose purpose, std::shared_ptr<SshCall> call);
  void Serve(Purpose purpose, const Channel& target, RemoteScript script);
  Channel* Find(uint64_t number);
  // Returns whether its process is looked for while it says nothing.
  static bool IsProbed(const Channel& channel);
  // Helpers take turns: few channels are left for them.
  bool IsBusyWith(Purpose purpose) const;

  absl::Status StepChannels();
  absl::Status KeepAlive();
  // Acts on the state that the channel has reached. True: something has changed.
  bool React(Channel& channel);
  bool ReactToCall(Channel& channel);
  bool ReactToHelper(Channel& channel);
  bool Watch(Channel& channel);
  void OnRefused(Channel& channel);
  void OnKillRefused(Channel& target);
  void Condemn(Channel& channel, absl::Status verdict);
  void Answer(Channel& channel, absl::StatusOr<ExecResult> result);

  const SshConfig* const config_;
  const std::unique_ptr<SshSession> session_;
  // Stands before the channels, which it must outlive.
  Channels channels_;
  uint64_t last_number_ = 0;
  uint64_t opener_ = 0;  // the channel that is being opened; 0: none
  uint64_t sender_ = 0;  // the channel whose packet is sent in part; 0: none
  int limit_;            // calls at the same time
  bool has_granted_ = false;
  int refusals_in_vain_ = 0;  // since the last session that was granted, with no other one open
  absl::Duration last_ping_;
  absl::Status dead_end_;  // not OK: the session is of no more use
  std::vector<std::shared_ptr<SshCall>> refused_;
};

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_SSH_CHANNELS_H_
