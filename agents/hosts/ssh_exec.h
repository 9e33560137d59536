// Runs one command on one channel of a session, driven in small steps that never wait.
//
// Owner: the thread of SshLink.
#ifndef MUSTER_AGENTS_HOSTS_SSH_EXEC_H_
#define MUSTER_AGENTS_HOSTS_SSH_EXEC_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agents/hosts/remote_script.h"
#include "agents/hosts/ssh_session.h"
#include "agents/hosts/ssh_talk.h"

typedef struct _LIBSSH2_CHANNEL LIBSSH2_CHANNEL;

namespace muster::hosts {

struct ExecRequest {
  RemoteScript script;
  // The program's input, behind the script. The caller owns it: it may be large, and is not read
  // any more once the call is answered.
  std::string_view input;
  absl::Duration timeout;
  size_t max_stdout_bytes = 0;
  size_t max_stderr_bytes = 0;
  // Gives the program its input in place of `input`, and takes its standard output; null if none.
  std::shared_ptr<TalkWords> talk = nullptr;
};

struct ExecResult {
  int exit_code = 0;
  std::string signal;  // "KILL"; empty: none
  bool has_begun = false;
  std::string stdout_data;
  std::string stderr_data;
  std::string noise;  // what the login shell said before; all it said if nothing has begun
};

// RESOURCE_EXHAUSTED, for a program that wrote too much to its stdout, or to its stderr.
absl::Status TooLongError(bool is_stdout);
bool IsStdoutTooLong(const absl::Status& status);

class SshExec {
 public:
  // Tells the call's progress. kRefused: the host grants no further channel now; nothing was
  // started. kTooLong: an output is over its limit; the program still runs.
  enum class State { kOpening, kRunning, kEnded, kTooLong, kRefused };

  // `session` and `request` must outlive this object. A null request opens a channel and closes it
  // again: a sign of life that starts no process.
  SshExec(SshSession* session, const ExecRequest* request);

  // Goes on as far as it can. An error is a fault of the session, and the end of all that it
  // carries.
  absl::Status Step();

  State state() const { return state_; }
  // libssh2 opens one channel of a session at a time.
  bool has_channel() const { return channel_ != nullptr; }
  // The script runs.
  bool has_begun() const { return stdout_.has_begun(); }
  // Returns the script's process, which leads a process group; 0 if it is not known yet.
  int pid() const;
  // The program has ended: what it wrote is on its way, and no more is waited for.
  void Drain();
  bool is_draining() const { return is_draining_; }
  // Tells, in kTooLong, whether the long output is stdout.
  bool is_stdout_too_long() const { return is_stdout_too_long_; }
  // Returns the result of a command in kEnded; once.
  ExecResult TakeResult();

  // The channel is no longer wanted; Step goes on until is_closed().
  void Close() { wants_close_ = true; }
  bool is_closed() const { return is_closed_; }

 private:
  // The last call on the channel, which must be repeated first if it was not through.
  enum class Turn { kWrite, kEof, kStdout, kStderr, kDrain, kEnd };

  absl::Status StepOpening();
  absl::Status StepRunning();
  absl::Status StepClosing();
  // True: libssh2 must wait for the socket.
  bool IsWaiting(long rc) const;
  // Returns the bytes to write next: the script's, then the program's input.
  std::string_view Unwritten();
  absl::Status Write(bool* must_stop);
  absl::Status SendEof(bool* must_stop);
  absl::Status Read(int stream, FramedOutput* output, bool* must_stop);
  absl::Status RoundTrip(bool* must_stop);
  absl::Status CheckEnd();
  void TakeExit();

  SshSession* const session_;
  const ExecRequest* const request_;
  LIBSSH2_CHANNEL* channel_ = nullptr;
  State state_ = State::kOpening;
  bool is_started_ = false;
  Turn turn_ = Turn::kWrite;

  size_t written_ = 0;  // of both together
  std::string said_;    // the part of a talk that is the input now
  bool is_input_done_ = false;
  FramedOutput stdout_;
  FramedOutput stderr_;
  bool is_stdout_too_long_ = false;

  bool is_draining_ = false;
  int quiet_round_trips_ = 0;
  int round_trips_ = 0;
  bool has_read_ = false;  // since the last round trip

  ExecResult result_;
  bool wants_close_ = false;
  bool is_closed_ = false;
};

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_SSH_EXEC_H_
