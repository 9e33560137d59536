// Everything of the Slurm backend but launching and observing.
#include "agents/slurm/backend.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "agents/hosts/local_host.h"
#include "agents/hosts/private_modes.h"
#include "agents/slurm/command_scheduler.h"
#include "agents/slurm/profile.h"
#include "agents/slurm/rest_scheduler.h"
#include "agents/slurm/users_host.h"
#include "agents/users/run_as_host.h"
#include "contract/errors.h"
#include "contract/issues.h"
#include "contract/roles.h"
#include "contract/text.h"
#include "daemon/log.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

// squeue may cost slurmctld at most a fifth of its time, and twice that while ends are awaited.
constexpr int kQueueShare = 5;

SlurmConfig WithDefaults(SlurmConfig config, const std::string& state_dir) {
  if (config.run_dir.empty()) config.run_dir = state_dir + "/runs";
  // The directory is beside the runs, which the nodes see for certain.
  if (config.image_dir.empty())
    config.image_dir = config.run_dir.substr(0, config.run_dir.rfind('/')) + "/images";
  if (!config.run_as_user) return config;
  config.own_directory = OwnDirectoryOf(state_dir);
  if (config.run_as_helper.empty()) config.run_as_helper = users::DefaultRunAsPath();
  // A conversion would be the agent's job, with the agent's credentials.
  config.convert_images = false;
  return config;
}

// sbatch gives '%' and '\' in paths a meaning of their own.
absl::Status CheckSharedDirectory(std::string_view name, const std::string& path) {
  const bool usable =
      path.starts_with('/') && std::none_of(path.begin(), path.end(), [](unsigned char c) {
        return c < ' ' || c == '%' || c == '\\';
      });
  if (usable) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} \"{}\" cannot be used: give an absolute path without '%', '\\' and "
                  "control characters",
                  name, path));
}

std::unique_ptr<Scheduler> MakeScheduler(const SlurmConfig& config, hosts::Host* host,
                                         CallGate* gate, Commands* commands) {
  if (config.rest_url.empty())
    return std::make_unique<CommandScheduler>(host, commands, config.run_as_user);
  std::string user = config.rest_user.empty() ? config.user_on_host : config.rest_user;
  // This machine knows its own user; no host has to be asked.
  if (user.empty()) {
    const auto environment = commands->JobEnvironment();
    if (environment.ok() && environment->contains("USER")) user = environment->at("USER");
  }
  return std::make_unique<RestScheduler>(config, std::move(user), MakeHttp(config.rest_url), gate,
                                         commands);
}

std::unique_ptr<JobUsers> MakeUsers(const SlurmConfig& config, hosts::Host* host, CallGate* gate) {
  if (!config.run_as_user) return nullptr;
  return std::make_unique<JobUsers>(config, host, gate);
}

std::unique_ptr<hosts::Host> MakeHost(const SlurmConfig& config, JobUsers* users,
                                      std::unique_ptr<hosts::Host> host) {
  if (users == nullptr) return host;
  return std::make_unique<UsersHost>(
      std::move(host), config.run_dir,
      [users](const std::string& name) { return &users->SideOf(name).host; });
}

// Reads what runs leave as their users, and nothing as the agent, whatever it is asked for.
std::unique_ptr<hosts::Host> MakeOutputHost(const SlurmConfig& config, JobUsers* users,
                                            hosts::Host* host) {
  if (users == nullptr) return nullptr;
  auto nobody = std::make_unique<users::RunAsHost>(host, config.run_as_helper, "");
  return MakeHost(config, users, std::move(nobody));
}

}  // namespace

SlurmBackend::SlurmBackend(SlurmConfig config, std::unique_ptr<hosts::Host> host)
    : config_(std::move(config)),
      users_(MakeUsers(config_, host.get(), &gate_)),
      host_(MakeHost(config_, users_.get(), std::move(host))),
      reads_(host_.get(), config_.read_patience),
      gate_(
          {.polls = config_.max_polls_per_minute, .calls = config_.max_scheduler_calls_per_minute},
          config_.submit_patience),
      commands_(config_, host_.get(), &gate_),
      arrays_(users_ == nullptr ? config_.run_dir : users_->own_directory(), host_.get(),
              [this](const std::string& run_key) { return RootOf(run_key); }),
      scheduler_(MakeScheduler(config_, host_.get(), &gate_, &commands_)),
      images_(config_, host_.get(), scheduler_.get()),
      watcher_(&reads_, RunPaths::EndedDirectory(config_.run_dir), config_.record_interval),
      output_host_(MakeOutputHost(config_, users_.get(), host_.get())) {
  if (users_ != nullptr)
    LogEvent(spdlog::level::info, "jobs_run_as_users", {{"meaning", users_->Meaning()}});
  if (config_.files == nullptr || users_ != nullptr) return;
  trees_ = std::make_unique<uploads::HostTrees>(host_.get(), config_.run_dir + "/files",
                                                config_.files->cache());
}

absl::Status SlurmBackend::Probe() {
  for (const auto& [name, path] :
       {std::pair("run_dir", &config_.run_dir), std::pair("image_dir", &config_.image_dir)}) {
    if (absl::Status status = CheckSharedDirectory(name, *path); !status.ok()) return status;
  }
  const absl::StatusOr<ClusterSettings> settings = scheduler_->Probe();
  if (!settings.ok()) return settings.status();
  const absl::Status usable = users_ == nullptr ? CheckRunDirectoryIsWritable() : users_->Probe();
  if (!usable.ok()) return usable;
  if (absl::Status status = CheckSight(*settings); !status.ok()) return status;
  const MutexLock lock(mutex_);
  keeps_accounting_ = settings->keeps_accounting;
  max_array_size_ = settings->max_array_size;
  taken_limits_ = settings->taken_limits;
  return absl::OkStatus();
}

absl::Status SlurmBackend::CheckRunDirectoryIsWritable() {
  const std::string probe = config_.run_dir + "/.probe";
  absl::Status status =
      host_->MakeDirectories(RunPaths::EndedDirectory(config_.run_dir), hosts::kPrivateDirectory);
  if (status.ok()) status = host_->WriteFile(probe, "", {.mode = 0600, .sync = false});
  if (status.ok()) status = host_->RemoveTree(probe);
  if (status.ok()) return status;
  return absl::FailedPreconditionError(fmt::format(
      "run_dir cannot be used: {}. Set it to a directory that the agent may write to and that the "
      "compute nodes share",
      ToStd(status.message())));
}

absl::StatusOr<v1::Inventory> SlurmBackend::Inventory() {
  const absl::StatusOr<ClusterSettings> settings = scheduler_->Settings();
  if (!settings.ok()) return settings.status();
  if (absl::Status status = CheckSight(*settings); !status.ok()) return status;
  absl::StatusOr<std::vector<v1::Pool>> pools = scheduler_->Pools();
  if (!pools.ok()) return pools.status();

  if (users_ == nullptr) RefreshRights(*settings);
  MarkDefaultPools(config_.profile.defaults.slurm().partition(), &*pools);
  v1::Inventory inventory;
  inventory.set_identity(settings->name);
  inventory.set_scheduler_version("slurm " + settings->version);
  inventory.set_takes_uploads(config_.files != nullptr);
  inventory.set_takes_shell_environment(config_.files != nullptr);
  inventory.set_takes_secrets(true);
  v1::AdmissionFacts& facts = *inventory.mutable_admission();
  facts.set_results_root(config_.results_root);
  facts.mutable_slurm()->mutable_spank_options()->Assign(config_.spank_options.begin(),
                                                         config_.spank_options.end());
  // slurmrestd does not tell it.
  if (config_.rest_url.empty())
    facts.mutable_slurm()->set_max_array_size(static_cast<uint32_t>(settings->max_array_size));
  inventory.mutable_pools()->Assign(pools->begin(), pools->end());
  inventory.mutable_observed_at()->set_seconds(absl::ToUnixSeconds(absl::Now()));
  if (pools->empty()) *inventory.add_issues() = contract::NoPartitions();
  if (!settings->keeps_accounting) *inventory.add_issues() = contract::NoAccounting();
  for (v1::ClusterIssue& issue : gate_.Issues()) *inventory.add_issues() = std::move(issue);
  const MutexLock lock(mutex_);
  gpu_types_ = GpuTypesOf(*pools);
  pools_ = *std::move(pools);
  keeps_accounting_ = settings->keeps_accounting;
  max_array_size_ = settings->max_array_size;
  taken_limits_ = settings->taken_limits;
  return inventory;
}

absl::Status SlurmBackend::Adopt(const std::vector<agents::RunHandle>& runs) {
  RememberUsers(runs);
  WatchRecords(!runs.empty());
  return absl::OkStatus();
}

agents::RunOutput SlurmBackend::OpenLogs(const agents::RunHandle& run) {
  const RunPaths paths = PathsOf(run.run_key);
  agents::RunOutput output;
  const uint32_t ranks =
      run.assignment == nullptr ? 1 : contract::RankCount(run.assignment->spec());
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    output.logs.push_back({rank, v1::LOG_STREAM_STDOUT, paths.standard_output(rank)});
    output.logs.push_back({rank, v1::LOG_STREAM_STDERR, paths.standard_error(rank)});
  }
  output.start_mark = paths.start_note();
  if (run.assignment == nullptr) return output;
  const absl::StatusOr<agent::v1::Assignment> resolved = Resolve(*run.assignment);
  if (resolved.ok())
    output.readable_results = output.results_directory = resolved->spec().results_directory();
  const std::optional<JobUser> user = users_ == nullptr ? std::nullopt : users_->Of(run.run_key);
  if (user.has_value() && !output.readable_results.empty())
    output.readable_results = UserPath(user->name, output.results_directory);
  // Settings that have changed since the launch may refuse it; nobody knows then.
  const absl::StatusOr<v1::JobSpec> spec = ApplyProfile(run.assignment->spec(), config_.profile);
  output.may_have_gpus = !spec.ok() || MayHaveGpus(*spec);
  return output;
}

// A user who cannot be acted for holds up no other's runs.
std::vector<absl::Status> SlurmBackend::Forget(const std::vector<agents::RunHandle>& runs) {
  std::map<std::string, std::vector<size_t>> shares;
  for (size_t i = 0; i < runs.size(); ++i) shares[RootOf(runs[i].run_key)].push_back(i);
  std::vector<absl::Status> statuses(runs.size());
  for (const auto& [root, share] : shares) {
    std::vector<agents::RunHandle> of_user;
    for (const size_t i : share) of_user.push_back(runs[i]);
    const absl::Status status = ForgetOfUser(of_user);
    for (const size_t i : share) statuses[i] = status;
  }
  return statuses;
}

// Files that the command left in its working directory are the user's. Then the claim stays, too,
// because a stray job of the run that starts later must find it. Files that cannot be removed cost
// disk space, not correctness.
absl::Status SlurmBackend::ForgetOfUser(const std::vector<agents::RunHandle>& runs) {
  std::vector<std::string> works;
  for (const agents::RunHandle& run : runs) works.push_back(PathsOf(run.run_key).work());
  host_->RemoveEmptyDirectories(works).IgnoreError();
  const std::vector<absl::StatusOr<hosts::FileInfo>> left = host_->StatMany(works);
  std::vector<std::string> trees;
  for (size_t i = 0; i < runs.size(); ++i) {
    const RunPaths paths = PathsOf(runs[i].run_key);
    trees.push_back(paths.exit_record());
    if (left[i].status().code() == absl::StatusCode::kNotFound) {
      trees.push_back(paths.directory());
    } else if (const auto names = host_->ListDirectory(paths.directory()); names.ok()) {
      for (const std::string& name : *names) {
        if (name != "work" && name != "claim")
          trees.push_back(fmt::format("{}/{}", paths.directory(), name));
      }
    }
  }
  // The trees may have secrets of the user's shell: while the host is away they are not forgotten.
  // Other errors do not go away, and would keep the runs for ever.
  const absl::Status removed = host_->RemoveManyTrees(trees);
  if (absl::IsUnavailable(removed) || absl::IsDeadlineExceeded(removed)) return removed;
  const bool has_lists = arrays_.Load().ok();
  for (size_t i = 0; i < runs.size(); ++i) {
    const agents::RunHandle& run = runs[i];
    {
      // Comes first: a look that misses the run's user must see why.
      const MutexLock lock(mutex_);
      forgotten_.insert(run.run_key);
    }
    if (has_lists) arrays_.Forget(run.run_key);
    // Results stay, too, and are read as the user.
    const bool has_results = run.assignment != nullptr && !OpenLogs(run).results_directory.empty();
    if (users_ != nullptr) users_->Forget(run.run_key, left[i].ok() || has_results);
    const MutexLock lock(mutex_);
    tracks_.erase(run.run_key);
  }
  return absl::OkStatus();
}

absl::Duration SlurmBackend::ObserveInterval() const {
  absl::Duration interval;
  bool is_awaited = false;
  {
    const MutexLock lock(mutex_);
    is_awaited = pace_.interval() < config_.observe_interval;
    interval = is_awaited ? std::max(pace_.interval(), kQueueShare * last_queue_duration_ / 2)
                          : std::max(config_.observe_interval, kQueueShare * last_queue_duration_);
  }
  return gate_.ObserveInterval(interval, is_awaited);
}

std::unique_ptr<agents::Backend> CreateSlurmBackend(SlurmConfig config, std::string state_dir,
                                                    std::unique_ptr<hosts::Host> host) {
  if (host == nullptr) host = std::make_unique<hosts::LocalHost>();
  return std::make_unique<SlurmBackend>(WithDefaults(std::move(config), state_dir),
                                        std::move(host));
}

}  // namespace muster::slurm
