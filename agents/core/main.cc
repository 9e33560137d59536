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
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "agents/core/agent.h"
#include "agents/core/agent_config.h"
#include "agents/core/check_report.h"
#include "agents/core/credentials_command.h"
#include "agents/core/host_run_files.h"
#include "agents/core/journal.h"
#include "agents/core/machine_hosts.h"
#include "agents/files/broker_files.h"
#include "agents/files/file_cache.h"
#include "agents/files/job_files.h"
#include "agents/hosts/ssh_host.h"
#include "agents/machines/own_run_files.h"
#include "agents/machines/remote/remote_run_files.h"
#include "agents/machines/run_records.h"
#include "clients/cpp/address.h"
#include "contract/text.h"
#include "daemon/command_line.h"
#include "daemon/log.h"
#include "daemon/process.h"

namespace muster::agents {
namespace {

constexpr char kProgram[] = "muster-agent";
constexpr int kExitError = 1;
constexpr int kExitUsage = 2;

int Fail(const absl::Status& status, int code = kExitError) {
  fmt::print(stderr, "muster-agent: {}\n", ToStd(status.message()));
  return code;
}

// Each look at the exit records there is a command over SSH.
constexpr absl::Duration kRemoteRecordInterval = absl::Seconds(2);

absl::StatusOr<std::unique_ptr<Backend>> MakeRemoteSlurmBackend(AgentConfig config) {
  absl::StatusOr<std::unique_ptr<hosts::SshHost>> host = hosts::SshHost::Create(config.slurm_ssh);
  if (!host.ok()) return host.status();
  config.slurm.user_on_host = config.slurm_ssh.user;
  config.slurm.record_interval = kRemoteRecordInterval;
  if (config.slurm.image_dir.empty()) config.slurm.image_dir = config.slurm.run_dir + "/images";
  return slurm::CreateSlurmBackend(config.slurm, config.state_dir, *std::move(host));
}

// Completes the settings of machines with others that they need.
machines::MachinesConfig MachinesConfigOf(const AgentConfig& config) {
  machines::MachinesConfig machines = config.machines;
  machines.cluster = config.cluster;
  if (config.machine_hosts_file.empty()) return machines;
  machines.read_hosts = [file = config.machine_hosts_file, ssh = config.machine_ssh] {
    return ReadMachineHosts(file, ssh);
  };
  return machines;
}

absl::StatusOr<std::unique_ptr<Backend>> MakeMachinesBackend(const AgentConfig& config,
                                                             uploads::JobFiles* files) {
  machines::MachinesConfig machines = MachinesConfigOf(config);
  machines.files = files;
  if (machines.read_hosts != nullptr) {
    absl::StatusOr<std::vector<machines::HostConfig>> hosts = machines.read_hosts();
    if (!hosts.ok()) return hosts.status();
    machines.hosts = *std::move(hosts);
  }
  return machines::CreateMachinesBackend(machines, config.state_dir);
}

// `files`: null for a backend that is only looked at.
absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(AgentConfig config, uploads::JobFiles* files) {
  if (config.kind == v1::CLUSTER_KIND_MACHINES) return MakeMachinesBackend(config, files);
  if (config.kind == v1::CLUSTER_KIND_KUBERNETES) {
    config.kubernetes.cluster = config.cluster;
    config.kubernetes.files = files;
    return kubernetes::CreateKubernetesBackend(config.kubernetes, config.state_dir);
  }
  config.slurm.cluster = config.cluster;
  config.slurm.files = files;
  if (!config.slurm_ssh.hosts.empty()) return MakeRemoteSlurmBackend(std::move(config));
  return slurm::CreateSlurmBackend(config.slurm, config.state_dir);
}

// An API server does many small writes at a time; each launch is three, one after the other.
constexpr int kKubernetesLaunches = 16;

int LaunchParallelism(v1::ClusterKind kind, const AgentOptions& options) {
  // A machine starts runs as they come, and first come is first served; a scheduler has an order of
  // its own.
  if (kind == v1::CLUSTER_KIND_MACHINES) return 1;
  return kind == v1::CLUSTER_KIND_KUBERNETES ? kKubernetesLaunches : options.launch_parallelism;
}

// Machines and Slurm call the directory alike.
std::string WorkOf(const RankOfRun& of) {
  return fmt::format("{}/{}", of.run_key, machines::kWorkDirectory);
}

// Over a connection of its own, so that what is copied does not hold up Slurm's commands.
OpenRunFiles RunFilesOnLoginHost(const AgentConfig& config) {
  return [ssh = config.slurm_ssh, runs = config.slurm.run_dir](
             const RankOfRun& of) -> absl::StatusOr<std::unique_ptr<RunFiles>> {
    absl::StatusOr<std::unique_ptr<hosts::SshHost>> host = hosts::SshHost::Create(ssh);
    if (!host.ok()) return host.status();
    return MakeHostRunFiles(
        *std::move(host), {.host_title = "the login host", .root = runs, .directory = WorkOf(of)});
  };
}

OpenRunFiles RunFilesOnMachines(const AgentConfig& config, const std::string& runs) {
  if (config.machine_hosts_file.empty()) {
    return [runs, keep = config.machines.keep_work](const RankOfRun& of) {
      return machines::OpenOwnRunFiles(runs, keep, of);
    };
  }
  return [machines = MachinesConfigOf(config), runs](const RankOfRun& of) {
    return machines::OpenRemoteRunFiles(machines, runs, of);
  };
}

// Where the files of runs are. None: on Kubernetes they go with the pod.
OpenRunFiles RunFilesOf(const AgentConfig& config) {
  const std::string own = config.state_dir + "/runs";
  if (config.kind == v1::CLUSTER_KIND_MACHINES) return RunFilesOnMachines(config, own);
  if (config.kind != v1::CLUSTER_KIND_SLURM) return nullptr;
  if (!config.slurm_ssh.hosts.empty()) return RunFilesOnLoginHost(config);
  return [runs = config.slurm.run_dir.empty() ? own : config.slurm.run_dir](const RankOfRun& of) {
    return OpenLocalRunFiles(runs, WorkOf(of));
  };
}

AgentOptions OptionsOf(const AgentConfig& config) {
  AgentOptions options;
  options.core.cluster = config.cluster;
  options.core.kind = config.kind;
  options.core.max_active_runs = config.max_active_runs;
  options.broker_target = client::ParseAddress(config.broker)->target;
  options.launch_parallelism =
      config.launch_parallelism.value_or(LaunchParallelism(config.kind, options));
  options.open_run_files = RunFilesOf(config);
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
  const absl::StatusOr<std::unique_ptr<Backend>> backend = MakeBackend(config, nullptr);
  if (!backend.ok()) return Fail(backend.status());
  const v1::ClusterChecks checks = (*backend)->Check();
  fmt::print("{}", CheckReport(checks));
  return HasFailed(checks) ? kExitError : 0;
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
  StartLogging("muster-agent", config.json_logs, config.log_level);

  // The journal first: its lock keeps a second agent from the backend's files.
  absl::StatusOr<std::unique_ptr<Journal>> journal =
      OpenJournal({.state_dir = config.state_dir,
                   .cluster = config.cluster,
                   .max_bytes = MaxJournalBytes(config.max_active_runs)});
  if (!journal.ok()) return Fail(journal.status());
  config.state_dir = std::filesystem::canonical(config.state_dir);
  const AgentOptions options = OptionsOf(config);
  const std::unique_ptr<uploads::FileSource> source =
      uploads::MakeBrokerFiles(options.broker_target);
  const absl::StatusOr<std::unique_ptr<uploads::FileCache>> cache =
      uploads::FileCache::Open(config.state_dir + "/files", config.files, source.get());
  if (!cache.ok()) return Fail(cache.status());
  uploads::JobFiles files(cache->get());
  absl::StatusOr<std::unique_ptr<Backend>> backend = MakeBackend(config, &files);
  if (!backend.ok()) return Fail(backend.status());
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
  // So that nobody waits for files when all that follows is undone.
  (*cache)->Stop();
  if (!status.ok()) {
    LogEvent(spdlog::level::critical, "stopped", {{"error", std::string(ToStd(status.message()))}});
  } else {
    LogEvent(spdlog::level::info, "stopped");
  }
  if (agent.has_calls_under_way()) {
    // A command that does not end, after a patience that has: the next process looks its run up.
    std::fflush(nullptr);
    std::_Exit(status.ok() ? 0 : kExitError);
  }
  // The thread waits for it with sigwait, so it ends no thread.
  // NOLINTNEXTLINE(bugprone-bad-signal-to-kill-thread)
  pthread_kill(waiter.native_handle(), SIGTERM);
  waiter.join();
  return status.ok() ? 0 : kExitError;
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
