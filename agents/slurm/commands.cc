#include "agents/slurm/commands.h"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "contract/text.h"
#include "fmt/format.h"
#include "sync/mutex.h"

namespace muster::slurm {
namespace {

constexpr std::string_view kSystemPath =
    "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
// One line for each of a million jobs of one user.
constexpr size_t kMaxOutputBytes = size_t{64} << 20;
// Bytes of a command's words that an error quotes.
constexpr size_t kQuotedErrorOutputBytes = 1000;

std::string_view Quotable(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return text.substr(0, kQuotedErrorOutputBytes);
}

absl::Status Failed(const std::string& name, const hosts::CommandResult& result) {
  const std::string end = result.signal != 0
                              ? fmt::format("was ended by signal {}", result.signal)
                              : fmt::format("ended with exit code {}", result.exit_code);
  return absl::UnavailableError(fmt::format("{} {}: {}", name, end, Quotable(result.stderr_data)));
}

// Some commands end with 0 although they could not ask ("squeue: error: Invalid user").
bool IsDoubtful(const hosts::CommandResult& result) {
  return result.stdout_data.empty() && result.stderr_data.find("error:") != std::string::npos;
}

std::map<std::string, std::string> Identity(const std::string& name, const std::string& home) {
  return {{"HOME", home}, {"USER", name}, {"LOGNAME", name}};
}

// Jobs run as the agent's user. From the user database, not from HOME, which sudo and the like
// leave as it was.
std::map<std::string, std::string> OwnIdentity() {
  std::array<char, 16384> buffer;
  passwd entry;
  passwd* found = nullptr;
  if (getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found) != 0) return {};
  if (found == nullptr) return {};
  return Identity(found->pw_name, found->pw_dir);
}

// The line is name:password:uid:gid:comment:home:shell.
absl::StatusOr<std::map<std::string, std::string>> ParseIdentity(std::string_view line) {
  std::vector<std::string> fields(1);
  for (const char c : Quotable(line)) {
    if (c == ':') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (fields.size() != 7 || !fields[5].starts_with('/')) {
    return absl::UnavailableError(
        fmt::format("getent passwd answers \"{}\", which is no user with a home", line));
  }
  return Identity(fields[0], fields[5]);
}

CallKind KindOf(const std::vector<std::string>& argv) {
  const std::string& name = argv.front();
  const std::string_view verb = argv.size() > 1 ? std::string_view(argv[1]) : std::string_view();
  if (name == "sbatch") return verb == "--test-only" ? CallKind::kOther : CallKind::kSubmit;
  if (name == "squeue") return CallKind::kObserve;
  if (name == "scancel") return CallKind::kEnd;
  // A token is what all else waits for.
  const bool urgent = verb == "uhold" || verb == "release" || verb == "token";
  return name == "scontrol" && urgent ? CallKind::kEnd : CallKind::kOther;
}

}  // namespace

absl::Status CouldNotRun(const absl::Status& why, std::string_view words) {
  const bool is_denied = absl::IsPermissionDenied(why);
  return absl::Status(
      is_denied ? absl::StatusCode::kPermissionDenied : absl::StatusCode::kUnavailable,
      ToAbsl(words));
}

Commands::Commands(const SlurmConfig& config, hosts::Host* host, CallGate* gate)
    : config_(config), host_(host), gate_(gate) {
  std::string path = config.job_path.empty() ? std::string(kSystemPath) : config.job_path;
  // Stands before the system's: the machine may have an srun of another Slurm.
  if (config.job_path.empty() && !config.bin_dir.empty()) path = config.bin_dir + ":" + path;
  job_environment_["PATH"] = path;
  std::string slurm_conf = config.slurm_conf;
  const bool is_here = config.user_on_host.empty();
  if (const char* inherited = std::getenv("SLURM_CONF");
      is_here && slurm_conf.empty() && inherited != nullptr) {
    slurm_conf = inherited;
  }
  if (!slurm_conf.empty()) job_environment_["SLURM_CONF"] = slurm_conf;
  if (is_here) identity_ = OwnIdentity();
  environment_ = job_environment_;
  environment_["LC_ALL"] = "C";
  // Times as seconds since 1970.
  environment_["SLURM_TIME_FORMAT"] = "%s";
  // Sets of array tasks whole, however long.
  environment_["SLURM_BITSTR_LEN"] = "0";
}

absl::StatusOr<hosts::CommandResult> Commands::Run(std::vector<std::string> argv) {
  hosts::Command command;
  command.argv = std::move(argv);
  command.env = environment_;
  command.timeout = config_.command_timeout;
  return RunInTurn(std::move(command));
}

absl::StatusOr<hosts::CommandResult> Commands::RunSbatch(std::vector<std::string> argv) {
  hosts::Command command;
  command.argv = std::move(argv);
  command.env = job_environment_;
  command.timeout = config_.sbatch_timeout;
  return RunInTurn(std::move(command));
}

absl::StatusOr<hosts::CommandResult> Commands::RunInTurn(hosts::Command command) {
  if (absl::Status status = gate_->Enter(command.argv.front(), KindOf(command.argv)); !status.ok())
    return status;
  absl::StatusOr<hosts::CommandResult> result = RunClean(std::move(command));
  gate_->OnAnswer(result.ok() ? std::string_view(result->stderr_data) : std::string_view());
  return result;
}

absl::StatusOr<hosts::CommandResult> Commands::RunClean(hosts::Command command) {
  if (!config_.bin_dir.empty()) command.argv.front() = config_.bin_dir + "/" + command.argv.front();
  // The agent's environment holds options of sbatch and squeue (SBATCH_*, SQUEUE_*), and what is
  // nobody's business.
  command.unset_env = {"*"};
  command.max_stdout_bytes = kMaxOutputBytes;
  const absl::StatusOr<std::map<std::string, std::string>> identity = WhoAmI();
  if (!identity.ok()) return identity.status();
  command.env.insert(identity->begin(), identity->end());
  return host_->Run(command);
}

absl::StatusOr<std::map<std::string, std::string>> Commands::WhoAmI() {
  {
    const MutexLock lock(mutex_);
    if (identity_.has_value()) return *identity_;
  }
  hosts::Command command;
  command.argv = {"getent", "passwd", config_.user_on_host};
  const absl::StatusOr<hosts::CommandResult> result = host_->Run(command);
  // An error of the host says nothing about the command that is asked for.
  if (!result.ok()) return CouldNotRun(result.status(), ToStd(result.status().message()));
  if (!result->ok()) return Failed("getent passwd " + config_.user_on_host, *result);
  absl::StatusOr<std::map<std::string, std::string>> identity = ParseIdentity(result->stdout_data);
  if (!identity.ok()) return identity;
  const MutexLock lock(mutex_);
  identity_ = *identity;
  return identity;
}

absl::StatusOr<std::map<std::string, std::string>> Commands::JobEnvironment() {
  absl::StatusOr<std::map<std::string, std::string>> environment = WhoAmI();
  if (environment.ok()) environment->insert(job_environment_.begin(), job_environment_.end());
  return environment;
}

absl::StatusOr<hosts::CommandResult> Commands::RunUncounted(std::vector<std::string> argv) {
  hosts::Command command;
  command.argv = std::move(argv);
  command.env = environment_;
  command.timeout = config_.command_timeout;
  return RunClean(std::move(command));
}

absl::Status Commands::Check(const std::string& name) {
  const absl::StatusOr<hosts::CommandResult> result = RunUncounted({name, "--version"});
  if (!result.ok()) return result.status();
  return result->ok() ? absl::OkStatus() : Failed(name, *result);
}

absl::StatusOr<std::string> Commands::Ask(std::vector<std::string> argv) {
  const std::string name = argv.front();
  absl::StatusOr<hosts::CommandResult> result = Run(std::move(argv));
  if (!result.ok()) {
    absl::Status status =
        CouldNotRun(result.status(), fmt::format("{}: {}", name, ToStd(result.status().message())));
    // The gate's mark that nobody was asked.
    result.status().ForEachPayload(
        [&](auto type, const absl::Cord& payload) { status.SetPayload(type, payload); });
    return status;
  }
  if (!result->ok() || IsDoubtful(*result)) return Failed(name, *result);
  return std::move(result->stdout_data);
}

}  // namespace muster::slurm
