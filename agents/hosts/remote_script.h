// Makes the text that is sent over SSH, so that a host's shell does exactly what is meant.
//
// sshd hands a command to the user's login shell, which may be bash, csh or anything else and may
// say what it likes before it starts. So the command is one of two constants that all shells read
// alike; it starts /bin/sh, which takes a script from its standard input: first the script's size,
// then the script, then whatever the started program is to read. The first thing the script writes
// to each of its outputs is a line with a number that nobody can guess; what came before it is the
// login shell's noise.
//
// It is pure, apart from the random number.
#ifndef MUSTER_AGENTS_HOSTS_REMOTE_SCRIPT_H_
#define MUSTER_AGENTS_HOSTS_REMOTE_SCRIPT_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "agents/hosts/host.h"

namespace muster::hosts {

// Bytes that a login shell may print before our script runs. Messages of the day have some kB.
inline constexpr size_t kMaxNoiseBytes = 1 << 20;

// Returns 32 hexadecimal digits, new ones at each call.
std::string NewNonce();

struct RemoteScript {
  // The command for sshd, which is a constant.
  std::string_view shell_command;
  // Bytes that go to its standard input before the program's own.
  std::string header;
  std::string nonce;
};

// Wraps a script of our own; user text is in it only through ShellQuote. It is run whole or not at
// all, even if only a part of it arrives.
RemoteScript WrapScript(std::string_view body);
// Starts a program as Host::Run says. INVALID_ARGUMENT: the command cannot be run anywhere.
absl::StatusOr<RemoteScript> WrapCommand(const Command& command);
// Kills the process group that a script of ours leads, or the process alone if it leads none.
RemoteScript WrapKill(int pid);
// Ends with 0 while the process is there.
RemoteScript WrapIsAlive(int pid);

// Returns the error if the script says at the end of its stderr that the program was not started,
// in the classes that NotStarted knows, and takes the trailer away from `stderr_data`. OK
// otherwise.
absl::Status TakeNotStarted(const Command& command, std::string_view nonce,
                            std::string* stderr_data);

// One output of a script, from which the noise is taken.
class FramedOutput {
 public:
  FramedOutput(std::string nonce, size_t max_bytes);

  // False: it is longer than the limit, or the noise is.
  bool Add(std::string_view bytes);

  // Returns whether the script has begun, and what its first line says behind the number.
  bool has_begun() const { return has_begun_; }
  const std::string& greeting() const { return greeting_; }
  const std::string& noise() const { return noise_; }
  std::string& data() { return data_; }

 private:
  const std::string nonce_;
  const size_t max_bytes_;
  bool has_begun_ = false;
  std::string greeting_;
  std::string noise_;  // until it has begun also what was not looked at yet
  std::string data_;
};

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_REMOTE_SCRIPT_H_
