#include "agents/machines/user_host.h"

#include <utility>
#include <vector>

#include "agents/hosts/remote_script.h"
#include "contract/message_of.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

// A script handles files of this machine; a file server may be behind them.
constexpr absl::Duration kScriptTimeout = absl::Seconds(30);
// Room for what a script's tools may complain about, and for the line that begins each output.
constexpr size_t kComplaintBytes = 1 << 20;
constexpr size_t kFrameBytes = 256;

}  // namespace

absl::StatusOr<hosts::CommandResult> UserHost::Run(const hosts::Command& command) {
  hosts::Command own = command;
  // Nothing of the agent's environment gets through, and what is given is not on its own way.
  if (!own.env.empty()) {
    std::vector<std::string> words = {"/usr/bin/env"};
    for (const auto& [name, value] : own.env) words.push_back(name + "=" + value);
    own.argv.insert(own.argv.begin(), words.begin(), words.end());
    own.env.clear();
  }
  own.argv =
      user_.Words(std::move(own.argv), own.working_directory.empty() ? "/" : own.working_directory);
  own.working_directory = "/";
  absl::StatusOr<hosts::CommandResult> result = local_.Run(own);
  const bool is_refused = result.ok() && result->exit_code == kRunAsRefused &&
                          result->stderr_data.starts_with(kRunAsWords);
  if (!is_refused) return result;
  std::string words = result->stderr_data.substr(0, result->stderr_data.find('\n'));
  return absl::UnavailableError(words);
}

absl::StatusOr<hosts::ExecResult> UserHost::RunScript(std::string_view body, std::string_view input,
                                                      size_t max_stdout_bytes) {
  const hosts::RemoteScript script = hosts::WrapScript(body);
  absl::StatusOr<hosts::CommandResult> result =
      Run({.argv = {"/bin/sh", "-c", std::string(script.shell_command)},
           .stdin_data = script.header + std::string(input),
           .timeout = kScriptTimeout,
           .max_stdout_bytes = max_stdout_bytes + kFrameBytes,
           .max_stderr_bytes = kComplaintBytes});
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

}  // namespace muster::machines
