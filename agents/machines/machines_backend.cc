// The Backend contract on top of scheduler, board and run directories.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <filesystem>
#include <utility>

#include "absl/time/clock.h"
#include "agents/core/batch_output.h"
#include "agents/core/job_storage.h"
#include "agents/core/launch_refusal.h"
#include "agents/core/proto_time.h"
#include "agents/files/shell_variables.h"
#include "agents/hosts/local_host.h"
#include "agents/machines/answers.h"
#include "agents/machines/fence.h"
#include "agents/machines/free_gpus.h"
#include "agents/machines/launch_outcome.h"
#include "agents/machines/machine.h"
#include "agents/machines/machines.h"
#include "agents/machines/process_search.h"
#include "agents/machines/remote/remote_backend.h"
#include "agents/machines/results_name.h"
#include "agents/machines/run_environment.h"
#include "agents/machines/run_layout.h"
#include "agents/machines/run_place.h"
#include "agents/machines/run_request.h"
#include "agents/machines/scheduler.h"
#include "agents/machines/supervisors.h"
#include "agents/machines/work_sweeper.h"
#include "contract/states.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

using agents::LaunchOutcome;
using agents::LookupOutcome;
using agents::ObserveOutcome;
using agents::RunHandle;

// Says `code` if the job asks for what cannot be; if not, it is this machine that could not do it.
LaunchOutcome RefusedBecause(v1::FailureCode code, const absl::Status& status) {
  const contract::FailureParts parts = {.detail = agents::WhatIsWrong(status)};
  return absl::IsInvalidArgument(status)
             ? Refused(code, v1::FAILURE_CLASS_CONFIG, parts)
             : Refused(v1::FAILURE_CODE_LAUNCH_FAILED, v1::FAILURE_CLASS_INFRA, parts);
}

// Returns whether the journal, if not the directory, says that the run left the queue.
bool WasSeenToBegin(v1::RunState state) { return state > v1::RUN_STATE_PENDING; }

std::string RunsDirectoryOf(const std::string& state_dir) { return state_dir + "/runs"; }

// Where working directories are filled that no run has yet: emptied at each start.
std::string LayoutsDirectoryOf(const std::string& state_dir) { return state_dir + "/layouts"; }

class MachinesBackend : public agents::Backend {
 public:
  MachinesBackend(MachinesConfig config, const std::string& state_dir, Machine machine,
                  std::unique_ptr<Supervisors> supervisors)
      : config_(std::move(config)),
        runs_directory_(RunsDirectoryOf(state_dir)),
        layout_(config_.files, LayoutsDirectoryOf(state_dir), runs_directory_),
        machine_(std::move(machine)),
        whole_machine_({{.name = machine_.hostname, .capacity = machine_.capacity}}),
        scheduler_({.runs_directory = runs_directory_,
                    .hostname = machine_.hostname,
                    .keep_finished_runs = config_.keep_finished_runs,
                    .lay_out = LayOut()},
                   whole_machine_.hosts(), std::move(supervisors), &board_),
        sweeper_({config_.supervisor_path, runs_directory_, machine_.hostname, config_.keep_work}) {
  }

  absl::Status Probe() override;
  absl::StatusOr<v1::Inventory> Inventory() override;
  v1::ClusterChecks Check() override;
  absl::StatusOr<v1::ClusterDetails> Describe(bool with_jobs) override;
  absl::StatusOr<v1::JobPlan> Plan(const v1::JobSpec& spec, const std::string& user) override;
  absl::Status Adopt(const std::vector<RunHandle>& runs) override;
  std::vector<LaunchOutcome> Launch(const agents::Assignments& runs) override {
    return agents::OneByOne(runs, [this](const auto& run) { return LaunchOne(*run); });
  }
  LookupOutcome Lookup(const RunHandle& run) override;
  ObserveOutcome Observe(const std::vector<RunHandle>& runs) override;
  std::vector<absl::Status> End(const std::vector<RunHandle>& runs) override {
    return agents::OneByOne(runs, [this](const RunHandle& run) { return EndOne(run); });
  }
  std::vector<absl::Status> Hold(const std::vector<RunHandle>& runs, bool held) override;
  agents::FenceOutcome Fence(const RunHandle& run) override {
    return FenceRun(DirectoryOf(run.run_key), board_.Fence(run.run_key));
  }
  agents::RunOutput OpenLogs(const RunHandle& run) override;
  std::vector<absl::Status> Forget(const std::vector<RunHandle>& runs) override;
  // A directory is there or is not: look-ups need no grace.
  agents::Capabilities capabilities() override {
    return {.allow_starts = [this] { scheduler_.AllowStarts(); }};
  }
  absl::Duration ObserveInterval() const override { return kFullReportInterval; }
  void SetWaker(std::function<void()> wake) override { board_.SetWaker(std::move(wake)); }
  std::map<std::string, uint64_t> SchedulerCalls() const override {
    return {{"muster-supervisor", scheduler_.supervisors_started()}};
  }

 private:
  LaunchOutcome LaunchOne(const agent::v1::Assignment& assignment);
  absl::Status EndOne(const RunHandle& run);
  RunDirectory DirectoryOf(const std::string& run_key) const {
    return RunDirectory(runs_directory_ + "/" + run_key);
  }
  Witness WitnessOf(const std::string& run_key) const {
    return {.run_key = run_key, .hostname = machine_.hostname, .now = absl::Now()};
  }
  // With this machine's paths in place of URIs. INVALID_ARGUMENT names the field.
  absl::StatusOr<agent::v1::Assignment> Resolve(const agent::v1::Assignment& assignment) const;
  RunSpec SpecOf(const agent::v1::Assignment& assignment) const;
  // Lays out the files of jobs as the working directories of their runs.
  FilesLane::Work LayOut();
  // Why the machine can never run the job.
  std::optional<Misfit> RefusalOf(const v1::JobSpec& spec) const;
  // The run enters the queue, or waits for its files first. `assignment`: null if nobody has it any
  // more; it brings nothing then.
  void Enqueue(const RunSpec& spec, bool held, const agent::v1::Assignment* assignment);
  // Returns whether it has ended because its files could not be fetched.
  bool WasRefusedItsFiles(const RunHandle& run, const RunFiles& files) const;
  // Reads from the disk the state of a run that is not on the board.
  absl::Status ObserveOnDisk(const RunHandle& run, std::vector<agents::Observation>* observations);

  const MachinesConfig config_;
  const std::string runs_directory_;
  RunLayout layout_;
  const Machine machine_;
  const Ledger whole_machine_;  // empty: only asked what could never fit
  std::atomic<uint64_t> next_order_ = 1;
  RunBoard board_;
  Scheduler scheduler_;
  const WorkSweeper sweeper_;
};

absl::Status MachinesBackend::Probe() {
  if (access(config_.supervisor_path.c_str(), X_OK) != 0) {
    return absl::ErrnoToStatus(errno, fmt::format("cannot run \"{}\"; install muster-supervisor "
                                                  "beside muster-agent, or set machines.supervisor",
                                                  config_.supervisor_path));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Inventory> MachinesBackend::Inventory() {
  v1::Inventory inventory;
  inventory.set_identity(machine_.identity);
  inventory.set_scheduler_version("muster " MUSTER_VERSION);
  inventory.set_images(machine_.containers.tool.empty() ? v1::IMAGE_SUPPORT_NONE
                                                        : v1::IMAGE_SUPPORT_OPTIONAL);
  inventory.set_takes_uploads(config_.files != nullptr);
  inventory.set_takes_shell_environment(config_.files != nullptr);
  *inventory.mutable_observed_at() = agents::ToProto(absl::Now());
  v1::Pool* pool = inventory.add_pools();
  pool->set_name(kPoolName);
  pool->set_is_default(true);
  pool->set_max_nodes(1);
  pool->set_available(true);
  v1::NodeGroup* group = pool->add_node_groups();
  group->set_count(1);
  group->set_usable_count(1);
  group->set_cpus(machine_.capacity.cores);
  group->set_memory_bytes(machine_.capacity.memory_bytes);
  for (const auto& [type, count] : machine_.capacity.GpuCounts())
    (*group->mutable_gpus())[type] = count;
  AddFreeGpus(scheduler_.load().ledger, 0, pool->mutable_free_gpus());
  inventory.mutable_issues()->Assign(machine_.issues.begin(), machine_.issues.end());
  return inventory;
}

v1::ClusterChecks MachinesBackend::Check() {
  return CheckMachine(machine_, runs_directory_, Probe());
}

absl::StatusOr<v1::ClusterDetails> MachinesBackend::Describe(bool /*with_jobs*/) {
  return DescribeMachine(machine_, scheduler_.load());
}

absl::StatusOr<v1::JobPlan> MachinesBackend::Plan(const v1::JobSpec& spec,
                                                  const std::string& user) {
  agent::v1::Assignment assignment;
  assignment.set_run_key(kPlannedRun);
  assignment.set_user(user);
  *assignment.mutable_spec() = spec;
  const absl::StatusOr<agent::v1::Assignment> resolved = Resolve(assignment);
  if (!resolved.ok()) return PlanRefusal(agents::WhatIsWrong(resolved.status()));
  if (const absl::Status free = CheckResultsName(spec, config_.files); !free.ok())
    return PlanRefusal(agents::WhatIsWrong(free));
  const Scheduler::Load load = scheduler_.load();
  const RunSpec planned = SpecOf(*resolved);
  QueuedRun run = QueuedFrom(planned, /*held=*/false);
  run.request = RequestOf(spec);  // with its nodes
  v1::JobPlan plan = PlanRun(planned, RefusalOf(spec), run.request, load.ledger,
                             load.outlook.waiting, scheduler_.WaitOf(run), "machine");
  hosts::LocalHost host;
  if (auto inputs = agents::PlanInputs(resolved->spec(), &host); inputs.has_value())
    *plan.add_checks() = *std::move(inputs);
  if (auto output = agents::WarnOfBatchOutput(spec); output.has_value())
    *plan.add_checks() = *std::move(output);
  return plan;
}

absl::StatusOr<agent::v1::Assignment> MachinesBackend::Resolve(
    const agent::v1::Assignment& assignment) const {
  agent::v1::Assignment own = assignment;
  if (own.spec().results_directory().empty()) {
    own.mutable_spec()->set_results_directory(
        DirectoryOf(assignment.run_key()).PathOf(kResultsDirectory));
  }
  return agents::OnCluster(
      own,
      {.cluster = {.cluster = config_.cluster, .is_remote = false, .roots = {}, .relative_to = {}},
       .results_root = {},
       .container_mounts = {DirectoryOf(assignment.run_key()).path()}});
}

RunSpec MachinesBackend::SpecOf(const agent::v1::Assignment& assignment) const {
  const std::string directory = DirectoryOf(assignment.run_key()).path();
  return MakeRunSpec(
      assignment, directory,
      // A container has its own PATH and HOME.
      RunEnvironment(assignment, config_.cluster, directory,
                     assignment.spec().image().empty() ? BaseEnvironment()
                                                       : std::map<std::string, std::string>()),
      {.cancel_grace = config_.cancel_grace,
       .limits = config_.limits,
       .container_tool = machine_.containers.tool});
}

absl::Status MachinesBackend::Adopt(const std::vector<RunHandle>& runs) {
  std::map<std::string, const RunHandle*> held;
  for (const RunHandle& run : runs) held[run.run_key] = &run;
  std::vector<RunningRun> running;
  std::vector<std::pair<int64_t, std::string>> finished;  // by end
  uint64_t last_order = 0;
  // A run may have removed its own claim.
  const std::map<std::string, Claim> supervisors = ListSupervisors();
  std::error_code error;
  for (std::filesystem::directory_iterator entry(runs_directory_, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string run_key = entry->path().filename().string();
    absl::StatusOr<RunFiles> files = DirectoryOf(run_key).Read();
    if (!files.ok()) continue;  // Lookup and Observe say what is wrong with it
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
      board_.Put(EndVerdict(WitnessOf(run_key), *files->exit));
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
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(), fmt::format("cannot list \"{}\"", runs_directory_));
  }
  next_order_ = last_order + 1;
  std::sort(finished.begin(), finished.end());
  std::deque<std::string> oldest_first;
  for (auto& [time, run_key] : finished) oldest_first.push_back(std::move(run_key));
  scheduler_.Start(std::move(running), std::move(oldest_first),
                   /*hold_starts=*/!runs.empty());
  return absl::OkStatus();
}

std::optional<Misfit> MachinesBackend::RefusalOf(const v1::JobSpec& spec) const {
  if (std::optional<Misfit> misfit = CheckPool(spec)) return misfit;
  if (std::optional<Misfit> misfit = CheckImage(spec, machine_.containers)) return misfit;
  return whole_machine_.Refusal(RequestOf(spec));
}

LaunchOutcome MachinesBackend::LaunchOne(const agent::v1::Assignment& assignment) {
  const std::string& run_key = assignment.run_key();
  const RunDirectory directory = DirectoryOf(run_key);
  if (board_.Contains(run_key)) return LaunchedAs("the machine has the run already");
  const absl::StatusOr<RunFiles> files = directory.Read();
  if (!files.ok()) {
    return Refused(
        v1::FAILURE_CODE_LAUNCH_FAILED, v1::FAILURE_CLASS_INFRA,
        {.detail = std::string(ToStd(files.status().message())),
         .remedy = "Tell the machine's operator: the agent's state directory is damaged."});
  }
  if (files->HasBegun()) return LaunchedAs("the machine has had the run already");
  if (const std::optional<Misfit> misfit = RefusalOf(assignment.spec())) return Refused(*misfit);
  const absl::StatusOr<agent::v1::Assignment> whole =
      uploads::WithShellVariables(assignment, config_.files);
  if (!whole.ok()) return uploads::NotLaunched(whole.status());
  const absl::StatusOr<agent::v1::Assignment> resolved = Resolve(*whole);
  if (!resolved.ok()) return RefusedBecause(v1::FAILURE_CODE_JOB_INVALID, resolved.status());
  hosts::LocalHost host;
  if (const absl::Status inputs = agents::CheckInputs(resolved->spec(), &host); !inputs.ok())
    return RefusedBecause(v1::FAILURE_CODE_INPUTS_MISSING, inputs);
  const bool has_files = assignment.spec().uploads_size() > 0;
  if (has_files && config_.files == nullptr)
    return Refused(v1::FAILURE_CODE_FILES_NOT_TAKEN, v1::FAILURE_CLASS_CONFIG, {});
  // The files come from a launch that was cut short.
  if (has_files) directory.RemoveWork();
  RunSpec spec = SpecOf(*resolved);
  spec.order = next_order_++;
  if (const absl::Status created = directory.Create(spec); !created.ok()) {
    return Refused(v1::FAILURE_CODE_LAUNCH_FAILED, v1::FAILURE_CLASS_INFRA,
                   {.detail = std::string(ToStd(created.message())),
                    .remedy = absl::IsResourceExhausted(created)
                                  ? "Free disk space on the machine and submit the job again."
                                  : "Tell the machine's operator."});
  }
  // The default one is made with the files: what is in work/ then is there as a whole.
  if (!has_files || !assignment.spec().results_directory().empty()) {
    const absl::Status made = agents::MakeResultsDirectory(resolved->spec(), &host);
    if (!made.ok()) {
      directory.RemoveBookkeeping();
      rmdir(directory.path().c_str());
      return RefusedBecause(v1::FAILURE_CODE_RESULTS_DIRECTORY, made);
    }
  }
  Enqueue(spec, assignment.held(), &assignment);
  return LaunchedAs(has_files ? "waits for its files, and has its place in the machine's queue"
                              : "entered the machine's queue");
}

FilesLane::Work MachinesBackend::LayOut() {
  if (config_.files == nullptr) return nullptr;
  return [this](FilesLane::Task* task, const FilesLane::Turn& turn) {
    return layout_.Make(task, turn);
  };
}

void MachinesBackend::Enqueue(const RunSpec& spec, bool held,
                              const agent::v1::Assignment* assignment) {
  board_.PutQuietly(PendingVerdict(WitnessOf(spec.run_key)));
  QueuedRun run = QueuedFrom(spec, held);
  const bool has_files = assignment != nullptr && assignment->spec().uploads_size() > 0;
  if (!has_files || DirectoryOf(spec.run_key).HasWork()) return scheduler_.Enqueue(std::move(run));
  RunWithFiles with_files = {.run = std::move(run),
                             .brought = {},
                             .makes_results = assignment->spec().results_directory().empty()};
  *with_files.brought.mutable_uploads() = assignment->spec().uploads();
  scheduler_.Enqueue(std::move(with_files));
}

bool MachinesBackend::WasRefusedItsFiles(const RunHandle& run, const RunFiles& files) const {
  const bool has_files = run.assignment != nullptr && run.assignment->spec().uploads_size() > 0;
  return has_files && contract::IsTerminal(run.state) && !files.HasBegun() &&
         !DirectoryOf(run.run_key).HasWork();
}

LookupOutcome MachinesBackend::Lookup(const RunHandle& run) {
  LookupOutcome outcome;
  const RunDirectory directory = DirectoryOf(run.run_key);
  const absl::StatusOr<RunFiles> files = directory.Read();
  if (!files.ok()) {
    outcome.kind = LookupOutcome::Kind::kCouldNotAsk;
    outcome.evidence = AgentEvidence(std::string(ToStd(files.status().message())));
  } else if (files->HasBegun() || board_.Contains(run.run_key)) {
    outcome.kind = LookupOutcome::Kind::kFound;
    if (files->started.has_value())
      outcome.external_id = std::to_string(files->started->process.pid);
    outcome.evidence =
        AgentEvidence(files->HasBegun() ? fmt::format("\"{}\" shows its start", directory.path())
                                        : "in the machine's queue");
  } else {
    outcome.kind = LookupOutcome::Kind::kAbsent;
    outcome.evidence = AgentEvidence(fmt::format(
        "the machine's queue does not have the run, and \"{}\" shows no start", directory.path()));
  }
  return outcome;
}

ObserveOutcome MachinesBackend::Observe(const std::vector<RunHandle>& runs) {
  ObserveOutcome outcome;
  std::vector<RunHandle> unknown;
  outcome.observations = board_.Report(runs, absl::Now(), &unknown);
  for (const RunHandle& run : unknown) {
    outcome.scheduler.Update(ObserveOnDisk(run, &outcome.observations));
  }
  return outcome;
}

absl::Status MachinesBackend::ObserveOnDisk(const RunHandle& run,
                                            std::vector<agents::Observation>* observations) {
  const RunDirectory directory = DirectoryOf(run.run_key);
  const absl::StatusOr<RunFiles> files = directory.Read();
  if (!files.ok()) return files.status();
  if (files->exit.has_value()) {
    observations->push_back(EndVerdict(WitnessOf(run.run_key), *files->exit));
  } else if (!files->HasBegun() && !WasSeenToBegin(run.state) && files->spec.has_value()) {
    Enqueue(*files->spec, run.held, run.assignment.get());
  } else {
    observations->push_back(LostVerdict(WitnessOf(run.run_key), directory.path()));
  }
  return absl::OkStatus();
}

absl::Status MachinesBackend::EndOne(const RunHandle& run) {
  if (!board_.Contains(run.run_key)) return absl::OkStatus();
  const absl::Status asked = DirectoryOf(run.run_key).AskCancel();
  scheduler_.Cancel(run.run_key);
  return asked;
}

std::vector<absl::Status> MachinesBackend::Hold(const std::vector<RunHandle>& runs, bool held) {
  for (const RunHandle& run : runs) scheduler_.SetHeld(run.run_key, held);
  return std::vector<absl::Status>(runs.size());
}

std::vector<absl::Status> MachinesBackend::Forget(const std::vector<RunHandle>& runs) {
  for (const RunHandle& run : runs) scheduler_.Forget(run.run_key);
  return std::vector<absl::Status>(runs.size());
}

agents::RunOutput MachinesBackend::OpenLogs(const RunHandle& run) {
  const RunDirectory directory = DirectoryOf(run.run_key);
  agents::RunOutput output;
  output.logs = {
      {.rank = 0, .stream = v1::LOG_STREAM_STDOUT, .path = directory.PathOf(kStdoutFile)},
      {.rank = 0, .stream = v1::LOG_STREAM_STDERR, .path = directory.PathOf(kStderrFile)}};
  output.may_have_gpus = agents::MayHaveGpus(run);
  if (run.assignment == nullptr) return output;
  const absl::StatusOr<agent::v1::Assignment> resolved = Resolve(*run.assignment);
  if (resolved.ok())
    output.readable_results = output.results_directory = resolved->spec().results_directory();
  return output;
}

}  // namespace

absl::StatusOr<std::unique_ptr<agents::Backend>> CreateMachinesBackend(
    const MachinesConfig& config, const std::string& state_dir) {
  hosts::LocalHost host;
  const std::string runs_directory = RunsDirectoryOf(state_dir);
  if (absl::Status s = host.MakeDirectories(runs_directory, 0700); !s.ok()) return s;
  MachinesConfig complete = config;
  if (complete.supervisor_path.empty()) complete.supervisor_path = DefaultSupervisorPath();
  if (!config.hosts.empty()) {
    const std::string hosts_directory = state_dir + "/hosts";
    if (absl::Status s = host.MakeDirectories(hosts_directory, 0700); !s.ok()) return s;
    return CreateRemoteBackend(complete, runs_directory, hosts_directory);
  }
  const std::string layouts_directory = LayoutsDirectoryOf(state_dir);
  if (absl::Status s = host.RemoveTree(layouts_directory); !s.ok()) return s;
  if (absl::Status s = host.MakeDirectories(layouts_directory, 0700); !s.ok()) return s;
  absl::StatusOr<Machine> machine = ReadMachine(config, host);
  if (!machine.ok()) return machine.status();
  absl::StatusOr<std::unique_ptr<Supervisors>> supervisors =
      Supervisors::Create(complete.supervisor_path);
  if (!supervisors.ok()) return supervisors.status();
  return std::make_unique<MachinesBackend>(std::move(complete), state_dir, *std::move(machine),
                                           *std::move(supervisors));
}

}  // namespace muster::machines
