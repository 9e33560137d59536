// Runs SshHost's programs; its files are in script_host.h.
#include "agents/hosts/ssh_host.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "contract/message_of.h"
#include "fmt/format.h"

namespace muster::hosts {
namespace {

// Bytes of a host's words that an error quotes.
constexpr size_t kQuotedBytes = 1000;
// Room for what our scripts' tools may complain about.
constexpr size_t kScriptStderrBytes = 1 << 20;

// sshd names these; for any other signal it does not say which it was.
int SignalNumber(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, int>, 13> kSignals = {{{"ABRT", SIGABRT},
                                                                          {"ALRM", SIGALRM},
                                                                          {"FPE", SIGFPE},
                                                                          {"HUP", SIGHUP},
                                                                          {"ILL", SIGILL},
                                                                          {"INT", SIGINT},
                                                                          {"KILL", SIGKILL},
                                                                          {"PIPE", SIGPIPE},
                                                                          {"QUIT", SIGQUIT},
                                                                          {"SEGV", SIGSEGV},
                                                                          {"TERM", SIGTERM},
                                                                          {"USR1", SIGUSR1},
                                                                          {"USR2", SIGUSR2}}};
  for (const auto& [known, number] : kSignals) {
    if (known == name) return number;
  }
  return 0;
}

absl::Status NoShellError(const std::string& host, const ExecResult& result) {
  return absl::UnavailableError(fmt::format(
      "{} does not run commands (exit code {}{}{}); the user needs a login shell there that is "
      "not restricted, and /bin/sh, head and coreutils. It said: \"{}\"",
      host, result.exit_code, result.signal.empty() ? "" : ", signal ", result.signal,
      result.noise.substr(0, kQuotedBytes)));
}

absl::Status RunError(const Command& command, const absl::Status& status) {
  const std::string& program = command.argv.front();
  if (absl::IsDeadlineExceeded(status)) {
    return absl::DeadlineExceededError(fmt::format("\"{}\" did not end within {} and was killed",
                                                   program, absl::FormatDuration(command.timeout)));
  }
  if (absl::IsResourceExhausted(status)) {
    const bool is_stdout = IsStdoutTooLong(status);
    return absl::ResourceExhaustedError(fmt::format(
        "\"{}\" wrote more than {} bytes to its {} and was killed; raise the limit or ask it for "
        "less",
        program, is_stdout ? command.max_stdout_bytes : command.max_stderr_bytes,
        is_stdout ? "stdout" : "stderr"));
  }
  return LostError(program, status);
}

// Says why a program is talked with no more: UNAVAILABLE.
absl::Status TalkEnd(const std::string& host, const Command& command, std::string_view nonce,
                     const absl::StatusOr<ExecResult>& result) {
  const std::string& program = command.argv.front();
  if (!result.ok()) return LostError(program, result.status());
  if (!result->has_begun) return NoShellError(host, *result);
  std::string complaint = result->stderr_data;
  if (absl::Status status = TakeNotStarted(command, nonce, &complaint); !status.ok())
    return absl::UnavailableError(MessageOf(status));
  return absl::UnavailableError(fmt::format("\"{}\" ended with exit code {}{}{}: {}", program,
                                            result->exit_code,
                                            result->signal.empty() ? "" : ", signal ",
                                            result->signal, complaint.substr(0, kQuotedBytes)));
}

SshConfig WithDefaults(SshConfig config) {
  const char* socket = std::getenv("SSH_AUTH_SOCK");
  if (config.agent_socket.empty() && socket != nullptr) config.agent_socket = socket;
  return config;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SshHost>> SshHost::Create(SshConfig config) {
  config = WithDefaults(std::move(config));
  if (absl::Status status = CheckSshConfig(config); !status.ok()) return status;
  // A pinned key that is none is found before the first connection.
  if (const auto keys = HostKeys::Parse("", "", config.host_keys); !keys.ok()) return keys.status();
  return std::unique_ptr<SshHost>(new SshHost(std::move(config)));
}

SshHost::SshHost(SshConfig config) : config_(std::move(config)), link_(config_) {}

std::string SshHost::Name() const {
  const std::string in_use = link_.host_in_use();
  if (!in_use.empty()) return in_use;
  std::string names;
  for (const LoginHost& host : config_.hosts) {
    names += fmt::format("{}{}", names.empty() ? "" : " or ", host.ToString());
  }
  return names;
}

absl::StatusOr<CommandResult> SshHost::Run(const Command& command) {
  absl::StatusOr<RemoteScript> script = WrapCommand(command);
  if (!script.ok()) return script.status();
  const std::string nonce = script->nonce;
  absl::StatusOr<ExecResult> result = link_.Exec({.script = *std::move(script),
                                                  .input = command.stdin_data,
                                                  .timeout = command.timeout,
                                                  .max_stdout_bytes = command.max_stdout_bytes,
                                                  .max_stderr_bytes = command.max_stderr_bytes});
  if (!result.ok()) return RunError(command, result.status());
  if (!result->has_begun) return NoShellError(Name(), *result);
  if (absl::Status status = TakeNotStarted(command, nonce, &result->stderr_data); !status.ok()) {
    return status;
  }
  CommandResult ended;
  ended.exit_code = result->exit_code;
  if (!result->signal.empty()) {
    ended.exit_code = 0;
    ended.signal = SignalNumber(result->signal);
    if (ended.signal == 0) {
      return absl::UnknownError(fmt::format("\"{}\" was ended by a signal that sshd does not name",
                                            command.argv.front()));
    }
  }
  ended.stdout_data = std::move(result->stdout_data);
  ended.stderr_data = std::move(result->stderr_data);
  return ended;
}

absl::StatusOr<std::unique_ptr<SshTalk>> SshHost::Talk(const Command& command,
                                                       TalkListener listener) {
  absl::StatusOr<RemoteScript> script = WrapCommand(command);
  if (!script.ok()) return script.status();
  const std::string nonce = script->nonce;
  auto words = std::make_shared<TalkWords>(std::move(listener));
  link_.Start({.script = *std::move(script),
               .input = {},
               .timeout = absl::InfiniteDuration(),
               .max_stdout_bytes = kMaxReadBytes,
               .max_stderr_bytes = command.max_stderr_bytes,
               .talk = words},
              [this, words, command, nonce](const auto& result) {
                words->End(TalkEnd(Name(), command, nonce, result));
              });
  return std::make_unique<SshTalk>(std::move(words), [this] { link_.Wake(); });
}

absl::StatusOr<ExecResult> SshHost::RunScript(std::string_view body, std::string_view input,
                                              size_t max_stdout_bytes) {
  absl::StatusOr<ExecResult> result = link_.Exec({.script = WrapScript(body),
                                                  .input = input,
                                                  .timeout = config_.file_timeout,
                                                  .max_stdout_bytes = max_stdout_bytes,
                                                  .max_stderr_bytes = kScriptStderrBytes});
  if (!result.ok()) return absl::UnavailableError(MessageOf(result.status()));
  if (!result->has_begun) return NoShellError(Name(), *result);
  if (!result->signal.empty()) {
    return absl::UnavailableError(
        fmt::format("{}: signal {} ended the shell that handles files", Name(), result->signal));
  }
  return result;
}

}  // namespace muster::hosts
