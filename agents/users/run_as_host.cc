#include "agents/users/run_as_host.h"

#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/time/time.h"
#include "agents/hosts/remote_script.h"
#include "contract/message_of.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::users {
namespace {

// The exit code of a muster-run-as that runs nothing, and the beginning of what it says then.
constexpr int kRefused = 125;
// The exit code of one that cannot tell now whether it would run something.
constexpr int kTryAgain = 75;
constexpr std::string_view kItsWords = "muster-run-as: ";
// A script handles files; a file server may be behind them.
constexpr absl::Duration kScriptTimeout = absl::Seconds(30);
// Room for what a script's tools may complain about, and for the line that begins each output.
constexpr size_t kComplaintBytes = 1 << 20;
constexpr size_t kFrameBytes = 256;

}  // namespace

std::string DefaultRunAsPath() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return program.parent_path() / "muster-run-as";
}

absl::StatusOr<std::string> AskRunAs(hosts::Host* host, const std::string& helper,
                                     const std::vector<std::string>& words) {
  hosts::Command command = {.argv = {helper, "check"}};
  command.argv.insert(command.argv.end(), words.begin(), words.end());
  const absl::StatusOr<hosts::CommandResult> result = host->Run(command);
  if (hosts::NotStarted(result.status()))
    return absl::FailedPreconditionError(result.status().message());
  if (!result.ok()) return absl::UnavailableError(result.status().message());
  if (result->ok()) return std::string(absl::StripAsciiWhitespace(result->stdout_data));
  const absl::string_view said = absl::StripAsciiWhitespace(result->stderr_data);
  if (result->signal != 0) {
    return absl::UnavailableError(ToAbsl(
        fmt::format("\"{}\" was killed by signal {}: {}", helper, result->signal, ToStd(said))));
  }
  return result->exit_code == kTryAgain ? absl::UnavailableError(said)
                                        : absl::FailedPreconditionError(said);
}

absl::StatusOr<hosts::CommandResult> RunAsHost::Run(const hosts::Command& command) {
  hosts::Command own = command;
  // Nothing of the caller's environment gets through muster-run-as.
  own.unset_env.clear();
  own.env.clear();
  std::vector<std::string> words = {
      helper_, "run", user_, command.working_directory.empty() ? "/" : command.working_directory};
  if (!command.env.empty()) words.emplace_back("/usr/bin/env");
  for (const auto& [name, value] : command.env) words.push_back(name + "=" + value);
  own.argv.insert(own.argv.begin(), words.begin(), words.end());
  own.working_directory = "/";
  absl::StatusOr<hosts::CommandResult> result = host_.Run(own);
  const bool is_refused = result.ok() && result->exit_code == kRefused &&
                          std::string_view(result->stderr_data).starts_with(kItsWords);
  if (!is_refused) return result;
  return absl::PermissionDeniedError(
      ToAbsl(std::string_view(result->stderr_data).substr(0, result->stderr_data.find('\n'))));
}

absl::StatusOr<hosts::ExecResult> RunAsHost::RunScript(std::string_view body,
                                                       std::string_view input,
                                                       size_t max_stdout_bytes) {
  const hosts::RemoteScript script = hosts::WrapScript(body);
  absl::StatusOr<hosts::CommandResult> result =
      Run({.argv = {"/bin/sh", "-c", std::string(script.shell_command)},
           .stdin_data = script.header + std::string(input),
           .timeout = kScriptTimeout,
           .max_stdout_bytes = max_stdout_bytes + kFrameBytes,
           .max_stderr_bytes = kComplaintBytes});
  if (absl::IsPermissionDenied(result.status())) return result.status();
  if (!result.ok()) return absl::UnavailableError(MessageOf(result.status()));
  hosts::FramedOutput output(script.nonce, max_stdout_bytes);
  hosts::FramedOutput complaints(script.nonce, kComplaintBytes);
  const bool is_whole = output.Add(result->stdout_data) && complaints.Add(result->stderr_data);
  if (result->signal != 0 || !is_whole || !output.has_begun()) {
    return absl::UnavailableError(
        fmt::format("{}: the shell that handles files ended with {}, signal {}: {}", Name(),
                    result->exit_code, result->signal, result->stderr_data.substr(0, kFrameBytes)));
  }
  return hosts::ExecResult{.exit_code = result->exit_code,
                           .signal = {},
                           .has_begun = true,
                           .stdout_data = std::move(output.data()),
                           .stderr_data = std::move(complaints.data()),
                           .noise = {}};
}

}  // namespace muster::users
