// muster-agent: speaks for one cluster until SIGTERM or SIGINT. Runs go on without it.
#include <fmt/core.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/time/clock.h"
#include "agents/app/agent_config.h"
#include "agents/app/credentials_command.h"
#include "agents/app/enroll_command.h"
#include "agents/app/kinds.h"
#include "agents/core/agent.h"
#include "agents/core/check_report.h"
#include "agents/core/identity.h"
#include "agents/core/identity_renewer.h"
#include "agents/core/journal.h"
#include "agents/files/broker_files.h"
#include "agents/files/file_cache.h"
#include "agents/files/job_files.h"
#include "agents/users/users_lines.h"
#include "contract/text.h"
#include "daemon/command_line.h"
#include "daemon/log.h"
#include "daemon/process.h"
#include "daemon/read_file.h"
#include "rpc/address.h"

namespace muster::agents {
namespace {

constexpr char kProgram[] = "muster-agent";
constexpr int kExitError = 1;
constexpr int kExitUsage = 2;

int Fail(const absl::Status& status, int code = kExitError) {
  fmt::print(stderr, "muster-agent: {}\n", ToStd(status.message()));
  return code;
}

// The line of a check about a cluster whose jobs are the agent's; nothing: its backend has one. On
// Kubernetes the namespaces decide what jobs share.
std::optional<v1::ClusterCheck> UsersLineOf(const AgentConfig& config) {
  if (config.run_as_user || config.kind == v1::CLUSTER_KIND_KUBERNETES) return std::nullopt;
  return users::SharedUserLine(config.kind);
}

AgentOptions OptionsOf(const AgentConfig& config) {
  const Kind& kind = KindOf(config.kind);
  AgentOptions options;
  std::random_device device;
  options.core.cluster = config.cluster;
  options.core.kind = config.kind;
  options.core.process = std::uniform_int_distribution<uint64_t>(1)(device);
  options.core.max_active_runs = config.max_active_runs.value_or(kind.max_active_runs);
  const rpc::Address address = *rpc::ParseAddress(config.broker);
  options.broker = {address.target, address.is_tls ? config.state_dir + "/tls" : ""};
  options.launch_parallelism = config.launch_parallelism.value_or(kind.launch_parallelism);
  options.open_run_files = kind.run_files(config);
  options.open_run_results = kind.run_results(config);
  if (kind.relay_files != nullptr) options.relay_run_files = kind.relay_files(config);
  options.users = UsersLineOf(config);
  if (options.users.has_value()) options.core.shared_user = options.users->seen();
  return options;
}

// A block of this size goes back to the system when it is freed, and so does as much at the end of
// a heap. Else the allocator keeps what parts of files took, for each thread that has sent some.
constexpr int kLargeBlockBytes = 1 << 20;

void GiveBackLargeBlocks() {
  mallopt(M_MMAP_THRESHOLD, kLargeBlockBytes);
  mallopt(M_TRIM_THRESHOLD, kLargeBlockBytes);
}

// Looks at everything that runs need, whether or not an agent works there at the same time: the
// journal stays closed.
int Check(AgentConfig config) {
  std::signal(SIGPIPE, SIG_IGN);
  // Its lines are the answer; the log is for what nobody expects.
  StartLogging(kProgram, config.json_logs, "error");
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(config.state_dir, error);
  if (!error) config.state_dir = absolute;
  const absl::StatusOr<std::unique_ptr<Backend>> backend =
      KindOf(config.kind).make_backend(config, nullptr);
  if (!backend.ok()) return Fail(backend.status());
  v1::ClusterChecks checks = (*backend)->Check();
  if (auto line = UsersLineOf(config)) *checks.add_checks() = *std::move(line);
  fmt::print("{}", CheckReport(checks));
  return HasFailed(checks) ? kExitError : 0;
}

// An agent that comes over the network has its certificate before anything begins.
absl::Status CheckOwnIdentity(const AgentOptions& options) {
  if (options.broker.tls_directory.empty()) return absl::OkStatus();
  const absl::StatusOr<Identity> identity = ReadIdentity(options.broker.tls_directory);
  if (!identity.ok()) return identity.status();
  return CheckIdentity(*identity, options.core.cluster, absl::Now());
}

int Serve(AgentConfig config) {
  GiveBackLargeBlocks();
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before any thread begins
  std::signal(SIGPIPE, SIG_IGN);
  RaiseDescriptorLimit();
  LeaveLocksUnwatched();
  ForbidCoreDumps();  // secrets of runs are in memory while they are launched
  StartLogging("muster-agent", config.json_logs, config.log_level);

  // The journal first: its lock keeps a second agent from the backend's files.
  absl::StatusOr<std::unique_ptr<Journal>> journal =
      OpenJournal({.state_dir = config.state_dir,
                   .cluster = config.cluster,
                   .max_bytes = MaxJournalBytes(OptionsOf(config).core.max_active_runs)});
  if (!journal.ok()) return Fail(journal.status());
  config.state_dir = std::filesystem::canonical(config.state_dir);
  const AgentOptions options = OptionsOf(config);
  if (absl::Status status = CheckOwnIdentity(options); !status.ok()) return Fail(status);
  const IdentityRenewer renewer(options.broker);
  const std::unique_ptr<uploads::FileSource> source = uploads::MakeBrokerFiles(options.broker);
  const absl::StatusOr<std::unique_ptr<uploads::FileCache>> cache =
      uploads::FileCache::Open(config.state_dir + "/files", config.files, source.get());
  if (!cache.ok()) return Fail(cache.status());
  uploads::JobFiles files(cache->get());
  absl::StatusOr<std::unique_ptr<Backend>> backend =
      KindOf(config.kind).make_backend(config, &files);
  if (!backend.ok()) return Fail(backend.status());
  if (options.users.has_value())
    LogEvent(spdlog::level::info, "jobs_run_as_agent", {{"meaning", options.users->seen()}});
  Agent agent(options, backend->get(), *std::move(journal));
  LogEvent(spdlog::level::info, "serving",
           {{"version", MUSTER_VERSION},
            {"cluster", config.cluster},
            {"broker", config.broker},
            {"state_dir", config.state_dir}});
  std::thread waiter([&] {
    int signal = 0;
    sigwait(&signals, &signal);
    agent.Stop();
  });
  const absl::Status status = agent.Run();
  // Nobody may wait for files while all that follows is undone.
  (*cache)->Stop();
  if (!status.ok()) {
    LogEvent(spdlog::level::critical, "stopped", {{"error", std::string(ToStd(status.message()))}});
  } else {
    LogEvent(spdlog::level::info, "stopped");
  }
  // Destructors would wait for each thread, and any may hang in a call that a file server never
  // answers. The next process looks up what is under way, as after a kill.
  std::fflush(nullptr);
  std::_Exit(status.ok() ? 0 : kExitError);
}

// Every user of a host sees the arguments of its programs, so the token is in none.
absl::StatusOr<std::string> JoinToken(const std::string& file) {
  constexpr size_t kMaxTokenBytes = 4096;
  const char* const variable = std::getenv("MUSTER_JOIN_TOKEN");
  absl::StatusOr<std::string> text = std::string(variable == nullptr ? "" : variable);
  if (!file.empty() || text->empty()) text = ReadFile(file.empty() ? "-" : file, kMaxTokenBytes);
  if (!text.ok()) return text.status();
  return std::string(absl::StripAsciiWhitespace(ToAbsl(*text)));
}

int EnrollHere(const AgentConfig& config, const std::string& token_file) {
  if (config.broker.empty() || config.state_dir.empty()) {
    return Fail(absl::InvalidArgumentError("enroll needs --broker HOST:PORT and --state-dir DIR"),
                kExitUsage);
  }
  const absl::StatusOr<std::string> token = JoinToken(token_file);
  if (!token.ok()) return Fail(token.status());
  const absl::StatusOr<std::string> done =
      Enroll({.broker = config.broker, .token = *token, .state_dir = config.state_dir});
  if (!done.ok()) return Fail(done.status());
  fmt::print("{}", *done);
  return 0;
}

int Main(int argc, char** argv) {
  AgentConfig config;
  const std::vector<Setting> settings = SettingsOf(&config);
  CLI::App app("Runs jobs on one cluster for a broker.", "muster-agent");
  app.set_version_flag("--version", std::string("muster-agent ") + MUSTER_VERSION);
  std::string config_file;
  app.add_option("--config", config_file,
                 "settings file (YAML); flags and MUSTER_AGENT_* override it");
  bool check = false;
  app.add_flag(
      "--check", check,
      "look at everything that runs need, say what is wrong and what to do, and exit: 1 if "
      "something has failed; needs no broker");
  std::map<std::string, std::string> flags;
  for (const Setting& setting : settings) {
    app.add_option_function<std::string>(
        FlagName(setting.key),
        [&flags, key = setting.key](const std::string& value) { flags[key] = value; },
        setting.help);
  }
  std::string registry;
  std::string registry_user;
  CLI::App* install = app.add_subcommand(
      "install-credentials",
      "give the cluster the secret on standard input for a private registry, and exit");
  install->add_option("REGISTRY", registry, "nvcr.io, docker.io, HOST or HOST:PORT")->required();
  install->add_option("USER", registry_user, "who pulls; for nvcr.io: leave it out");
  std::string token_file;
  CLI::App* enroll = app.add_subcommand(
      "enroll", "get the certificate of a cluster for a token of muster clusters invite, and exit");
  enroll->fallthrough();
  enroll->add_option(
      "--token-file", token_file,
      "the file with the token, which is good once; default: MUSTER_JOIN_TOKEN, which "
      "is the token itself, else standard input");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError&) {
    const std::string words =
        UnknownWords(kProgram, app.remaining(/*recurse=*/true), settings, {"--config", "--check"});
    return Fail(absl::InvalidArgumentError(words), kExitUsage);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }

  if (config_file.empty()) {
    if (const char* path = std::getenv("MUSTER_AGENT_CONFIG")) config_file = path;
  }
  absl::Status status;
  if (!config_file.empty()) status = ApplyYamlFile(config_file, kProgram, settings);
  if (status.ok()) status = ApplyEnvironment(std::getenv, kProgram, settings);
  if (status.ok()) status = ApplyFlags(flags, settings);
  if (status.ok() && enroll->parsed()) return EnrollHere(config, token_file);
  if (status.ok()) status = CheckComplete(config, /*needs_broker=*/!check && !install->parsed());
  if (!status.ok()) return Fail(status, kExitUsage);
  if (install->parsed()) {
    const absl::StatusOr<std::string> done = InstallCredentials(config, registry, registry_user);
    if (!done.ok()) return Fail(done.status());
    fmt::print("{}\n", *done);
    return 0;
  }
  return check ? Check(std::move(config)) : Serve(std::move(config));
}

}  // namespace
}  // namespace muster::agents

// Only a want of memory can throw, and ends the program either way.
// NOLINTNEXTLINE(bugprone-exception-escape)
int main(int argc, char** argv) { return muster::agents::Main(argc, argv); }
