// Makes the agent's own machine the place of all runs: no SSH, and records that the agent shares
// with the supervisors themselves (run_records.h).
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <utility>

#include "absl/time/clock.h"
#include "agents/core/job_storage.h"
#include "agents/hosts/local_host.h"
#include "agents/machines/answers.h"
#include "agents/machines/fence.h"
#include "agents/machines/launch_outcome.h"
#include "agents/machines/leases.h"
#include "agents/machines/machine.h"
#include "agents/machines/places.h"
#include "agents/machines/process_search.h"
#include "agents/machines/results_name.h"
#include "agents/machines/run_environment.h"
#include "agents/machines/run_layout.h"
#include "agents/machines/run_place.h"
#include "agents/machines/run_request.h"
#include "agents/machines/run_user.h"
#include "agents/machines/run_users.h"
#include "agents/machines/scheduler.h"
#include "agents/machines/supervisors.h"
#include "agents/machines/user_output.h"
#include "agents/machines/work_sweeper.h"
#include "contract/failures.h"
#include "contract/message_of.h"
#include "contract/states.h"
#include "daemon/log.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

using agents::LaunchOutcome;
using agents::RunHandle;

// Returns whether the journal, if not the directory, says that the run left the queue.
bool WasSeenToBegin(v1::RunState state) { return state > v1::RUN_STATE_PENDING; }

// The agent makes it for a run of another user, who may enter alone.
constexpr uint32_t kUserDirectoryMode = 0700;
constexpr std::string_view kNoContainersForUsers =
    "jobs run as their users here (run_as: user), and no containers are made for other users yet";

std::string RunsDirectoryOf(const std::string& state_dir) { return state_dir + "/runs"; }

// The directory in which working directories are filled before a run has them; emptied at each
// start.
std::string LayoutsDirectoryOf(const std::string& state_dir) { return state_dir + "/layouts"; }

// Returns the machine as people see it: always up.
HostView ViewOf(const Machine& machine) {
  HostView view;
  view.config.name = machine.hostname;
  view.capacity = machine.capacity;
  view.limits = machine.limits;
  view.containers = machine.containers;
  view.is_known = view.has_told = view.is_up = true;
  return view;
}

class OwnMachine : public Places {
 public:
  OwnMachine(MachinesConfig config, const std::string& state_dir, Machine machine,
             std::unique_ptr<RunUsers> users, std::unique_ptr<Supervisors> supervisors,
             RunBoard* board)
      : users_(std::move(users)),
        config_(std::move(config)),
        runs_directory_(RunsDirectoryOf(state_dir)),
        user_output_(runs_directory_),
        lease_(state_dir),
        layout_(config_.files, LayoutsDirectoryOf(state_dir), runs_directory_),
        machine_(std::move(machine)),
        whole_machine_({{.name = machine_.hostname, .capacity = machine_.capacity}}),
        board_(*board),
        scheduler_({.runs_directory = runs_directory_,
                    .machine = ViewOf(machine_),
                    .issues = machine_.issues,
                    .keep_finished_runs = config_.keep_finished_runs,
                    .lay_out = LayOut()},
                   std::move(supervisors), board),
        sweeper_({config_.supervisor_path, runs_directory_, machine_.hostname, config_.keep_work}) {
  }

  std::string_view Word() const override { return "machine"; }
  absl::Status Probe() const override;
  std::string Identity() const override { return machine_.identity; }
  RunScheduler& scheduler() override { return scheduler_; }
  v1::ClusterChecks Check() const override {
    v1::ClusterChecks checks = CheckMachine(machine_, runs_directory_, Probe());
    if (users_ != nullptr) *checks.add_checks() = UsersLine(*users_);
    return checks;
  }
  hosts::Host* output_host() override { return users_ == nullptr ? nullptr : &user_output_; }

  absl::StatusOr<agent::v1::Assignment> Resolve(
      const agent::v1::Assignment& assignment) const override;
  std::optional<Misfit> RefusalOf(const agent::v1::Assignment& assignment) const override;
  RunSpec SpecOf(const agent::v1::Assignment& resolved) const override;
  absl::Status AddToPlan(const v1::JobSpec& spec, const v1::JobSpec& resolved,
                         v1::JobPlan* plan) const override;

  absl::StatusOr<RunTrace> Find(const std::string& run_key) const override;
  absl::StatusOr<uint64_t> Adopt(const std::vector<RunHandle>& runs) override;
  std::optional<LaunchOutcome> Accept(std::shared_ptr<const agent::v1::Assignment> assignment,
                                      const agent::v1::Assignment& resolved,
                                      uint64_t order) override;
  absl::Status Observe(const RunHandle& run,
                       std::vector<agents::Observation>* observations) override;
  absl::Status Cancel(const std::string& run_key) override;
  absl::Status Signal(const std::string& run_key, const ProcessSignal& signal) override;
  agents::FenceOutcome Fence(const std::string& run_key,
                             std::optional<agents::FenceOutcome> on_board) override {
    return FenceRun(DirectoryOf(run_key), on_board);
  }
  absl::Duration fence_delay() const override {
    return FenceDelay(config_.cancel_grace, /*clocks=*/1);
  }
  absl::Status RenewLeases(absl::Duration remaining) override { return lease_.Renew(remaining); }
  agents::RunOutput OpenLogs(const RunHandle& run) override;
  void Forget(const RunHandle& run) override {
    user_output_.Forget(run.run_key);
    scheduler_.Forget(run.run_key);
  }

 private:
  RunDirectory DirectoryOf(const std::string& run_key) const {
    return RunDirectory(runs_directory_ + "/" + run_key);
  }
  // Lays out the files of jobs as the working directories of their runs.
  FilesLane::Work LayOut();
  // The run enters the queue, or waits for its files first. `assignment`: null if nobody has it any
  // more; it brings nothing then.
  void Enqueue(const RunSpec& spec, bool held, const agent::v1::Assignment* assignment);
  // Returns the user of a run, who has no name if it is the agent's own.
  RunUser UserOf(const agent::v1::Assignment& assignment) const;
  // Makes the run's own directory, for whoever runs its programs, and what Muster puts there.
  absl::Status PrepareUserDirectory(const RunSpec& spec, bool has_files, hosts::Host* host) const;
  // Leaves nothing of a run that is refused after all.
  void RemoveRefused(const RunSpec& spec) const;
  bool HasWork(const RunSpec& spec) const;
  // Returns whether it has ended because its files could not be fetched.
  bool WasRefusedItsFiles(const RunHandle& run, const RunFiles& files) const;

  const std::unique_ptr<RunUsers> users_;  // null: runs are the agent's user's
  const MachinesConfig config_;
  const std::string runs_directory_;
  UserOutput user_output_;
  OwnLease lease_;
  RunLayout layout_;
  const Machine machine_;
  const Ledger whole_machine_;  // empty: only asked what could never fit
  RunBoard& board_;
  Scheduler scheduler_;
  const WorkSweeper sweeper_;
};

// ---- what there is

absl::Status OwnMachine::Probe() const {
  if (access(config_.supervisor_path.c_str(), X_OK) != 0) {
    return absl::ErrnoToStatus(errno, fmt::format("cannot run \"{}\"; install muster-supervisor "
                                                  "beside muster-agent, or set machines.supervisor",
                                                  config_.supervisor_path));
  }
  return users_ == nullptr ? absl::OkStatus() : users_->Probe();
}

RunUser OwnMachine::UserOf(const agent::v1::Assignment& assignment) const {
  if (users_ == nullptr) return {};
  absl::StatusOr<RunUser> user = users_->UserOf(assignment.user(), assignment.run_key());
  // Such a run is refused. Should it come further, nothing runs as nobody's user.
  if (!user.ok()) return {.name = "-", .directory = DirectoryOf(assignment.run_key()).path()};
  return *std::move(user);
}

// ---- jobs

absl::StatusOr<agent::v1::Assignment> OwnMachine::Resolve(
    const agent::v1::Assignment& assignment) const {
  agent::v1::Assignment own = assignment;
  if (own.spec().results_directory().empty()) {
    const RunUser user = UserOf(assignment);
    const RunDirectory directory =
        user.IsOther() ? RunDirectory(user.directory) : DirectoryOf(assignment.run_key());
    own.mutable_spec()->set_results_directory(directory.PathOf(kResultsDirectory));
  }
  return agents::OnCluster(
      own,
      {.cluster = {.cluster = config_.cluster, .is_remote = false, .roots = {}, .relative_to = {}},
       .results_root = {},
       .container_mounts = {DirectoryOf(assignment.run_key()).path()}});
}

RunSpec OwnMachine::SpecOf(const agent::v1::Assignment& assignment) const {
  RunUser user = UserOf(assignment);
  const std::string directory =
      user.IsOther() ? user.directory : DirectoryOf(assignment.run_key()).path();
  // A container has its own PATH and HOME.
  std::map<std::string, std::string> base;
  if (assignment.spec().image().empty())
    base = user.IsOther() ? BaseEnvironmentOfUser() : BaseEnvironment();
  RunSpec spec = MakeRunSpec(assignment, directory,
                             RunEnvironment(assignment, config_.cluster, directory, base),
                             {.cancel_grace = config_.cancel_grace,
                              .limits = config_.limits,
                              .container_tool = machine_.containers.tool});
  spec.user = std::move(user);
  if (agents::KeepsLease(assignment)) spec.lease_file = lease_.path();
  return spec;
}

absl::Status OwnMachine::AddToPlan(const v1::JobSpec& spec, const v1::JobSpec& resolved,
                                   v1::JobPlan* plan) const {
  if (absl::Status free = CheckResultsName(spec, config_.files); !free.ok()) return free;
  // A plan does not say whose inputs they are.
  if (users_ != nullptr) return absl::OkStatus();
  hosts::LocalHost host;
  if (auto inputs = agents::PlanInputs(resolved, &host); inputs.has_value())
    *plan->add_checks() = *std::move(inputs);
  return absl::OkStatus();
}

std::optional<Misfit> OwnMachine::RefusalOf(const agent::v1::Assignment& assignment) const {
  const v1::JobSpec& spec = assignment.spec();
  if (std::optional<Misfit> misfit = CheckPool(spec)) return misfit;
  if (users_ != nullptr) {
    if (std::optional<Misfit> misfit = users_->RefusalOf(assignment.user())) return misfit;
  }
  if (std::optional<Misfit> misfit = CheckImage(spec, machine_.containers)) return misfit;
  return whole_machine_.Refusal(RequestOf(spec));
}

// ---- runs

absl::StatusOr<uint64_t> OwnMachine::Adopt(const std::vector<RunHandle>& runs) {
  std::map<std::string, const RunHandle*> held;
  for (const RunHandle& run : runs) held[run.run_key] = &run;
  std::vector<RunningRun> running;
  std::vector<std::pair<int64_t, std::string>> finished;  // by end
  uint64_t last_order = 0;
  // A run may have removed its own claim.
  const std::map<std::string, Claim> supervisors = ListSupervisors();
  const absl::Status listed = ForEachRun(runs_directory_, [&](const std::string& run_key) {
    absl::StatusOr<RunFiles> files = DirectoryOf(run_key).Read();
    if (!files.ok()) return;  // Lookup and Observe say what is wrong with it
    if (files->spec.has_value()) last_order = std::max(last_order, files->spec->order);
    const auto handle = held.find(run_key);
    const auto supervisor = supervisors.find(DirectoryOf(run_key).path());
    const bool lives = supervisor != supervisors.end();
    if (lives && !files->claimed) {
      files->claimed = true;
      files->claim = supervisor->second;
    }
    const bool was_seen = handle != held.end() && WasSeenToBegin(handle->second->state);
    if (files->exit.has_value() ? handle == held.end()
                                : !files->spec.has_value() && !was_seen && !lives) {
      DirectoryOf(run_key).RemoveBookkeeping();
      // One whose launch was cut short is launched again.
      if (handle == held.end())
        finished.emplace_back(files->exit.has_value() ? files->exit->end_us : 0, run_key);
    } else if (files->exit.has_value()) {
      board_.Put(EndVerdict(scheduler_.WitnessOf(run_key), *files->exit));
    } else if (handle != held.end() && WasRefusedItsFiles(*handle->second, *files)) {
      board_.PutUnseen(run_key);
    } else if (files->HasBegun() || was_seen) {
      running.push_back(
          {.run_key = run_key,
           .claim = files->claim.value_or(Claim{}),
           .allocation = files->claim.has_value() ? AllocationOf(*files) : Allocation{},
           .time_limit =
               files->spec.has_value() ? LongestLife(*files->spec) : absl::InfiniteDuration()});
    } else if (handle != held.end() && handle->second->state != v1::RUN_STATE_ASSIGNED) {
      Enqueue(*files->spec, handle->second->held, handle->second->assignment.get());
      if (files->cancel_asked) scheduler_.Cancel(run_key);
    }
  });
  if (!listed.ok()) return listed;
  std::sort(finished.begin(), finished.end());
  std::deque<std::string> oldest_first;
  for (auto& [time, run_key] : finished) oldest_first.push_back(std::move(run_key));
  scheduler_.Start(std::move(running), std::move(oldest_first),
                   /*hold_starts=*/!runs.empty());
  return last_order;
}

absl::StatusOr<RunTrace> OwnMachine::Find(const std::string& run_key) const {
  const RunDirectory directory = DirectoryOf(run_key);
  const absl::StatusOr<RunFiles> files = directory.Read();
  if (!files.ok()) return files.status();
  return RunTrace{
      .has_begun = files->HasBegun(),
      .path = directory.path(),
      .sign = "start",
      .external_id = files->started.has_value() ? std::to_string(files->started->process.pid) : ""};
}

std::optional<LaunchOutcome> OwnMachine::Accept(
    std::shared_ptr<const agent::v1::Assignment> assignment, const agent::v1::Assignment& resolved,
    uint64_t order) {
  RunSpec spec = SpecOf(resolved);
  spec.order = order;
  const std::unique_ptr<hosts::Host> host = HostFor(spec.user);
  if (const absl::Status inputs = agents::CheckInputs(resolved.spec(), host.get()); !inputs.ok())
    return RefusedBecause(v1::FAILURE_CODE_INPUTS_MISSING, inputs);
  const RunDirectory directory = DirectoryOf(assignment->run_key());
  const bool has_files = assignment->spec().uploads_size() > 0;
  // The files come from a launch that was cut short.
  if (has_files) directory.RemoveWork();
  if (const absl::Status made = PrepareUserDirectory(spec, has_files, host.get()); !made.ok()) {
    RemoveRefused(spec);
    return RefusedBecause(v1::FAILURE_CODE_LAUNCH_FAILED, made);
  }
  if (const absl::Status created = directory.Create(spec); !created.ok()) {
    RemoveRefused(spec);
    return Refused(
        v1::FAILURE_CODE_LAUNCH_FAILED, v1::FAILURE_CLASS_INFRA,
        {.detail = MessageOf(created),
         .cause = absl::IsResourceExhausted(created) ? contract::FailureCause::kMachineFull
                                                     : contract::FailureCause::kNone});
  }
  // The default one is made with the files: what is in work/ then is there as a whole.
  if (!has_files || !assignment->spec().results_directory().empty()) {
    const absl::Status made = agents::MakeResultsDirectory(resolved.spec(), host.get());
    if (!made.ok()) {
      RemoveRefused(spec);
      return RefusedBecause(v1::FAILURE_CODE_RESULTS_DIRECTORY, made);
    }
  }
  Enqueue(spec, assignment->held(), assignment.get());
  return std::nullopt;
}

FilesLane::Work OwnMachine::LayOut() {
  if (config_.files == nullptr) return nullptr;
  return [this](FilesLane::Task* task, const FilesLane::Turn& turn) {
    return layout_.Make(task, turn);
  };
}

void OwnMachine::Enqueue(const RunSpec& spec, bool held, const agent::v1::Assignment* assignment) {
  ArrivingRun run = {.run = QueuedFrom(spec, held)};
  const bool has_files = assignment != nullptr && assignment->spec().uploads_size() > 0;
  if (has_files && !HasWork(spec)) {
    *run.brought.mutable_uploads() = assignment->spec().uploads();
    run.makes_results = assignment->spec().results_directory().empty();
  }
  scheduler_.Enqueue(std::move(run));
}

absl::Status OwnMachine::PrepareUserDirectory(const RunSpec& spec, bool has_files,
                                              hosts::Host* host) const {
  if (!spec.user.IsOther()) return absl::OkStatus();
  const RunDirectory own(spec.user.directory);
  // Files that are there are of a launch that was cut short.
  if (absl::Status s = host->RemoveTree(own.path()); !s.ok()) return s;
  const std::string made = has_files ? own.path() : own.PathOf(kWorkDirectory);
  if (absl::Status s = host->MakeDirectories(made, kUserDirectoryMode); !s.ok()) return s;
  std::vector<hosts::NewFile> scripts;
  const hosts::WriteOptions options = {.mode = kUserDirectoryMode, .sync = false, .in_place = true};
  if (!spec.setup_script.empty())
    scripts.push_back({own.PathOf(kSetupFile), spec.setup_script, options});
  if (!spec.command_script.empty())
    scripts.push_back({own.PathOf(kCommandFile), spec.command_script, options});
  return scripts.empty() ? absl::OkStatus() : host->WriteMany(scripts);
}

void OwnMachine::RemoveRefused(const RunSpec& spec) const {
  const RunDirectory directory = DirectoryOf(spec.run_key);
  if (spec.user.IsOther()) RemoveUserDirectory(directory.path(), spec.user, kUserRemovalMs);
  directory.RemoveBookkeeping();
  rmdir(directory.path().c_str());
}

bool OwnMachine::HasWork(const RunSpec& spec) const {
  if (!spec.user.IsOther()) return DirectoryOf(spec.run_key).HasWork();
  return HostFor(spec.user)->Stat(RunDirectory(spec.user.directory).PathOf(kWorkDirectory)).ok();
}

bool OwnMachine::WasRefusedItsFiles(const RunHandle& run, const RunFiles& files) const {
  const bool has_files = run.assignment != nullptr && run.assignment->spec().uploads_size() > 0;
  return has_files && contract::IsTerminal(run.state) && !files.HasBegun() &&
         !(files.spec.has_value() ? HasWork(*files.spec) : DirectoryOf(run.run_key).HasWork());
}

absl::Status OwnMachine::Observe(const RunHandle& run,
                                 std::vector<agents::Observation>* observations) {
  const RunDirectory directory = DirectoryOf(run.run_key);
  const absl::StatusOr<RunFiles> files = directory.Read();
  if (!files.ok()) return files.status();
  if (files->exit.has_value()) {
    observations->push_back(EndVerdict(scheduler_.WitnessOf(run.run_key), *files->exit));
  } else if (!files->HasBegun() && !WasSeenToBegin(run.state) && files->spec.has_value()) {
    Enqueue(*files->spec, run.held, run.assignment.get());
  } else {
    observations->push_back(LostVerdict(scheduler_.WitnessOf(run.run_key), directory.path()));
  }
  return absl::OkStatus();
}

absl::Status OwnMachine::Cancel(const std::string& run_key) {
  if (!board_.Contains(run_key)) return absl::OkStatus();
  const absl::Status asked = DirectoryOf(run_key).AskCancel();
  scheduler_.Cancel(run_key);
  return asked;
}

absl::Status OwnMachine::Signal(const std::string& run_key, const ProcessSignal& signal) {
  const std::string why = SignalRun(DirectoryOf(run_key).path(), signal);
  return why.empty() ? absl::OkStatus() : absl::FailedPreconditionError(why);
}

agents::RunOutput OwnMachine::OpenLogs(const RunHandle& run) {
  const RunDirectory directory = DirectoryOf(run.run_key);
  agents::RunOutput output;
  output.logs = {
      {.rank = 0, .stream = v1::LOG_STREAM_STDOUT, .path = directory.PathOf(kStdoutFile)},
      {.rank = 0, .stream = v1::LOG_STREAM_STDERR, .path = directory.PathOf(kStderrFile)}};
  output.may_have_gpus = agents::MayHaveGpus(run);
  if (run.assignment == nullptr) return output;
  const absl::StatusOr<agent::v1::Assignment> resolved = Resolve(*run.assignment);
  if (!resolved.ok()) return output;
  output.readable_results = output.results_directory = resolved->spec().results_directory();
  if (users_ == nullptr) return output;
  const std::optional<RunUser> user = ReadRunUser(directory.path());
  output.readable_results =
      user.has_value() ? user_output_.SetResults(run.run_key, output.results_directory, *user) : "";
  return output;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Places>> CreateOwnMachine(const MachinesConfig& config,
                                                         const std::string& state_dir,
                                                         RunBoard* board) {
  hosts::LocalHost host;
  if (absl::Status s = host.MakeDirectories(RunsDirectoryOf(state_dir), 0700); !s.ok()) return s;
  const std::string layouts_directory = LayoutsDirectoryOf(state_dir);
  if (absl::Status s = host.RemoveTree(layouts_directory); !s.ok()) return s;
  if (absl::Status s = host.MakeDirectories(layouts_directory, 0700); !s.ok()) return s;
  absl::StatusOr<Machine> machine = ReadMachine(config, host);
  if (!machine.ok()) return machine.status();
  std::unique_ptr<RunUsers> users;
  if (config.run_as_user) {
    absl::StatusOr<std::unique_ptr<RunUsers>> found = RunUsers::Create(config, state_dir);
    if (!found.ok()) return found.status();
    users = *std::move(found);
    LogEvent(spdlog::level::info, "jobs_run_as_users", {{"meaning", UsersLine(*users).seen()}});
    machine->containers = {.tool = {}, .why = std::string(kNoContainersForUsers)};
  }
  absl::StatusOr<std::unique_ptr<Supervisors>> supervisors =
      Supervisors::Create(config.supervisor_path);
  if (!supervisors.ok()) return supervisors.status();
  return std::make_unique<OwnMachine>(config, state_dir, *std::move(machine), std::move(users),
                                      *std::move(supervisors), board);
}

}  // namespace muster::machines
