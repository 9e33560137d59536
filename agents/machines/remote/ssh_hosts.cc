// Hosts over SSH as the places of runs.
//
// The queue is the same as on one machine, over all hosts; a run's nodes are on as many hosts, all
// or none. On each host muster-supervisor does what the agent itself does on its own machine.
#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/time/clock.h"
#include "agents/core/job_storage.h"
#include "agents/core/lease_file.h"
#include "agents/hosts/local_host.h"
#include "agents/machines/answers.h"
#include "agents/machines/file_status.h"
#include "agents/machines/launch_outcome.h"
#include "agents/machines/leases.h"
#include "agents/machines/places.h"
#include "agents/machines/remote/host_router.h"
#include "agents/machines/remote/rank_spec.h"
#include "agents/machines/remote/remote_scheduler.h"
#include "agents/machines/results_name.h"
#include "agents/machines/run_directory.h"
#include "agents/machines/run_place.h"
#include "agents/machines/run_request.h"
#include "agents/machines/small_file.h"
#include "agents/machines/verdict.h"
#include "contract/failures.h"
#include "contract/message_of.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

using agents::LaunchOutcome;
using agents::RunHandle;

// Every host has this time for its first answer; slower hosts are down until they answer.
constexpr absl::Duration kFirstWord = absl::Seconds(20);

// Returns the facts about a run that has its hosts. `handle`: null if nobody wants it.
PlacedRun PlacedFrom(const std::string& run_key, const LaunchFiles& files, const RunHandle* handle,
                     absl::Duration grace) {
  PlacedRun placed = {.what = {.run = {.run_key = run_key}, .assignment = nullptr},
                      .placement = files.placement,
                      .is_wanted = handle != nullptr,
                      .begun = files.begun,
                      .refused = files.refused,
                      .refused_at = files.refused_at,
                      .last_word = files.last_word};
  if (handle == nullptr) return placed;
  placed.what.assignment = files.assignment != nullptr ? files.assignment : handle->assignment;
  if (placed.what.assignment != nullptr)
    placed.what.run = QueuedFrom(*placed.what.assignment, files.order, handle->held, grace);
  placed.state = handle->state;
  placed.cancel_asked = handle->cancel_requested;
  return placed;
}

class SshHosts : public Places {
 public:
  SshHosts(MachinesConfig config, std::string runs_directory, std::string hosts_directory,
           const std::string& state_dir, RunBoard* board)
      : config_(std::move(config)),
        runs_directory_(std::move(runs_directory)),
        hosts_directory_(std::move(hosts_directory)),
        board_(*board),
        lease_(state_dir) {}

  absl::Status Start();

  std::string_view Word() const override { return "cluster"; }
  absl::Status Probe() const override { return absl::OkStatus(); }
  // Hosts come and go; the cluster is the one that its operator gave this name.
  std::string Identity() const override { return "hosts of " + config_.cluster; }
  RunScheduler& scheduler() override { return *scheduler_; }
  v1::ClusterChecks Check() const override { return CheckHosts(scheduler_->load()); }
  bool TakeNews() override { return scheduler_->TakeNews(); }
  hosts::Host* output_host() override { return &router_; }

  absl::StatusOr<agent::v1::Assignment> Resolve(
      const agent::v1::Assignment& assignment) const override {
    return OnHost(assignment, config_.cluster, SomeDirectoryOf(assignment.run_key()));
  }
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
  absl::Status Cancel(const std::string& run_key) override {
    scheduler_->Cancel(run_key);
    return absl::OkStatus();
  }
  absl::Status Signal(const std::string& run_key, const ProcessSignal& signal) override {
    return scheduler_->Signal(run_key, signal);
  }
  agents::FenceOutcome Fence(const std::string& run_key,
                             std::optional<agents::FenceOutcome> on_board) override;
  absl::Duration fence_delay() const override {
    return FenceDelay(config_.cancel_grace, /*clocks=*/2);
  }
  absl::Status RenewLeases(absl::Duration remaining) override;
  agents::RunOutput OpenLogs(const RunHandle& run) override;
  void Forget(const RunHandle& run) override;

 private:
  // The directory of the results of a run of which rank 0 is there; empty if it has none.
  std::string ResultsOf(const RunHandle& run, const PlacedRank& first);
  RunRules Rules() const {
    return {.cancel_grace = config_.cancel_grace, .limits = config_.limits};
  }
  LaunchRecord RecordOf(const std::string& run_key) const {
    return LaunchRecord(runs_directory_ + "/" + run_key);
  }
  // Returns the run's on a host, where none is chosen yet.
  static std::string SomeDirectoryOf(const std::string& run_key) { return "/HOST/runs/" + run_key; }
  void Enqueue(std::shared_ptr<const agent::v1::Assignment> assignment, uint64_t order, bool held);

  const MachinesConfig config_;
  const std::string runs_directory_;
  const std::string hosts_directory_;
  RunBoard& board_;
  OwnLease lease_;  // the agent's own file, of which hosts get copies
  HostRouter router_;
  std::unique_ptr<RemoteScheduler> scheduler_;
};

absl::Status SshHosts::Start() {
  absl::StatusOr<SupervisorProgram> program = ReadSupervisorProgram(config_.supervisor_path);
  if (!program.ok()) return program.status();
  absl::StatusOr<std::unique_ptr<RemoteScheduler>> scheduler = RemoteScheduler::Create(
      {.cluster = config_.cluster,
       .runs_directory = runs_directory_,
       .hosts_directory = hosts_directory_,
       .host_directory = config_.host_directory,
       .rules = Rules(),
       .container_runtime = config_.container_runtime,
       .lost_after = config_.host_lost_after,
       .keep_finished_runs = config_.keep_finished_runs,
       .keep_work = config_.keep_work,
       .program = std::make_shared<const SupervisorProgram>(*std::move(program)),
       .files = config_.files,
       .lease_name = [this] { return std::filesystem::path(lease_.path()).filename().string(); },
       .read_hosts = config_.read_hosts},
      config_.hosts, &board_, &router_);
  if (!scheduler.ok()) return scheduler.status();
  scheduler_ = *std::move(scheduler);
  scheduler_->AwaitHosts(kFirstWord);
  return absl::OkStatus();
}

absl::Status SshHosts::RenewLeases(absl::Duration remaining) {
  if (absl::Status s = lease_.Renew(remaining); !s.ok()) return s;
  const std::string path = lease_.path();
  std::string content;
  if (const int error = ReadSmallFile(path, agents::kMaxLeaseFileBytes, &content))
    return FileError(error, "read", path);
  scheduler_->PutLease(std::filesystem::path(path).filename().string(), content);
  return absl::OkStatus();
}

// ---- jobs

std::optional<Misfit> SshHosts::RefusalOf(const agent::v1::Assignment& assignment) const {
  const v1::JobSpec& spec = assignment.spec();
  const Request request = RequestOf(assignment);
  if (std::optional<Misfit> misfit = CheckPool(spec)) return misfit;
  if (std::optional<Misfit> misfit = CheckShare(request)) return misfit;
  const Load load = scheduler_->load();
  if (std::optional<Misfit> misfit = CheckImage(spec, ContainersOf(load))) return misfit;
  // A host that has not answered yet may have what is wanted, whatever it had once.
  const bool all_told = std::all_of(load.hosts.begin(), load.hosts.end(),
                                    [](const HostView& host) { return host.has_told; });
  if (!all_told && request.nodes <= load.hosts.size()) return std::nullopt;
  return load.ledger.Refusal(request);
}

RunSpec SshHosts::SpecOf(const agent::v1::Assignment& resolved) const {
  const std::vector<std::string> addresses(std::max<size_t>(resolved.spec().nodes(), 1), "HOST");
  RunRules rules = Rules();
  rules.container_tool = ContainersOf(scheduler_->load()).tool;
  return RankSpec(resolved, config_.cluster, SomeDirectoryOf(resolved.run_key()), 0, addresses,
                  rules);
}

absl::Status SshHosts::AddToPlan(const v1::JobSpec& spec, const v1::JobSpec& /*resolved*/,
                                 v1::JobPlan* plan) const {
  const absl::Status free = CheckResultsName(spec, config_.files);
  if (free.ok()) return free;
  v1::ClusterCheck* check = plan->add_checks();
  check->set_code(v1::CHECK_CODE_STORAGE);
  check->set_subject("the directory of results");
  check->set_result(v1::CHECK_RESULT_WARN);
  check->set_seen(agents::WhatIsWrong(free));
  check->set_remedy(contract::AsClause(
      std::string(contract::RemedyFor(contract::FailureCause::kResultsNameTaken))));
  return absl::OkStatus();
}

// ---- runs

absl::StatusOr<RunTrace> SshHosts::Find(const std::string& run_key) const {
  const LaunchRecord record = RecordOf(run_key);
  const absl::StatusOr<LaunchFiles> files = record.Read();
  if (!files.ok()) return files.status();
  return RunTrace{.has_begun = !files->placement.empty(),
                  .path = record.path(),
                  .sign = "hosts",
                  .external_id = ""};
}

absl::StatusOr<uint64_t> SshHosts::Adopt(const std::vector<RunHandle>& runs) {
  std::map<std::string, const RunHandle*> held;
  for (const RunHandle& run : runs) held[run.run_key] = &run;
  std::vector<PlacedRun> placed;
  std::vector<std::pair<std::filesystem::file_time_type, FinishedRun>> finished;
  uint64_t last_order = 0;
  const absl::Status listed = ForEachRun(runs_directory_, [&](const std::string& run_key) {
    const absl::StatusOr<LaunchFiles> files = RecordOf(run_key).Read();
    if (!files.ok()) return;  // Lookup and Observe say what is wrong with it
    last_order = std::max(last_order, files->order);
    const auto handle = held.find(run_key);
    const bool is_wanted = handle != held.end();
    if (!files->placement.empty() && (is_wanted || files->assignment != nullptr)) {
      if (is_wanted) board_.PutUnseen(run_key);
      placed.push_back(
          PlacedFrom(run_key, *files, is_wanted ? handle->second : nullptr, config_.cancel_grace));
    } else if (!files->placement.empty()) {
      std::error_code ignored;
      finished.emplace_back(std::filesystem::last_write_time(RecordOf(run_key).path(), ignored),
                            FinishedRun{.run_key = run_key, .placement = files->placement});
    } else if (!is_wanted) {
      RecordOf(run_key).Remove();
    } else if (files->assignment != nullptr && handle->second->state == v1::RUN_STATE_PENDING) {
      Enqueue(files->assignment, files->order, handle->second->held);
    }
  });
  if (!listed.ok()) return listed;
  std::sort(finished.begin(), finished.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::deque<FinishedRun> oldest_first;
  for (auto& [time, run] : finished) oldest_first.push_back(std::move(run));
  scheduler_->Start(std::move(placed), std::move(oldest_first),
                    /*hold_starts=*/!runs.empty());
  return last_order;
}

std::optional<LaunchOutcome> SshHosts::Accept(
    std::shared_ptr<const agent::v1::Assignment> assignment,
    const agent::v1::Assignment& /*resolved*/, uint64_t order) {
  const absl::Status created = RecordOf(assignment->run_key()).Create(*assignment, order);
  if (!created.ok()) {
    return Refused(v1::FAILURE_CODE_LAUNCH_FAILED, v1::FAILURE_CLASS_INFRA,
                   {.detail = MessageOf(created),
                    .cause = absl::IsResourceExhausted(created) ? contract::FailureCause::kAgentFull
                                                                : contract::FailureCause::kNone});
  }
  const bool held = assignment->held();
  Enqueue(std::move(assignment), order, held);
  return std::nullopt;
}

void SshHosts::Enqueue(std::shared_ptr<const agent::v1::Assignment> assignment, uint64_t order,
                       bool held) {
  QueuedRun run = QueuedFrom(*assignment, order, held, config_.cancel_grace);
  scheduler_->Enqueue({.run = std::move(run), .assignment = std::move(assignment)});
}

absl::Status SshHosts::Observe(const RunHandle& run,
                               std::vector<agents::Observation>* observations) {
  const LaunchRecord record = RecordOf(run.run_key);
  const absl::StatusOr<LaunchFiles> files = record.Read();
  if (!files.ok()) return files.status();
  if (files->assignment != nullptr && files->placement.empty() &&
      run.state <= v1::RUN_STATE_PENDING) {
    Enqueue(files->assignment, files->order, run.held);
  } else if (!files->placement.empty()) {
    // Its record could not be read when the agent was started.
    board_.PutUnseen(run.run_key);
    scheduler_->Adopt(PlacedFrom(run.run_key, *files, &run, config_.cancel_grace));
  } else {
    observations->push_back(LostVerdict(scheduler_->WitnessOf(run.run_key), record.path()));
  }
  return absl::OkStatus();
}

// The hosts of a run are on disk before any of them is asked to start it.
agents::FenceOutcome SshHosts::Fence(const std::string& run_key,
                                     std::optional<agents::FenceOutcome> on_board) {
  using Kind = agents::FenceOutcome::Kind;
  if (on_board.has_value()) return *std::move(on_board);
  const LaunchRecord record = RecordOf(run_key);
  const absl::StatusOr<LaunchFiles> files = record.Read();
  if (!files.ok()) return {Kind::kNotYet, AgentEvidence(MessageOf(files.status()))};
  if (!files->placement.empty()) {
    return {Kind::kNotYet,
            AgentEvidence(fmt::format("\"{}\" shows the run's hosts, which have not told of it yet",
                                      record.path()))};
  }
  return {Kind::kNeverBegins,
          AgentEvidence(fmt::format("\"{}\" shows no hosts: none was ever asked to start the run",
                                    record.path()))};
}

agents::RunOutput SshHosts::OpenLogs(const RunHandle& run) {
  agents::RunOutput output;
  output.may_have_gpus = agents::MayHaveGpus(run);
  const absl::StatusOr<LaunchFiles> files = RecordOf(run.run_key).Read();
  if (!files.ok() || files->placement.empty()) return output;
  for (uint32_t rank = 0; rank < files->placement.size(); ++rank) {
    const PlacedRank& place = files->placement[rank];
    router_.SetOwner(place.directory, place.host);
    output.logs.push_back({.rank = rank,
                           .stream = v1::LOG_STREAM_STDOUT,
                           .path = place.directory + "/" + kStdoutFile});
    output.logs.push_back({.rank = rank,
                           .stream = v1::LOG_STREAM_STDERR,
                           .path = place.directory + "/" + kStderrFile});
  }
  const PlacedRank& first = files->placement[0];
  output.start_mark = fmt::format("{}/{}", first.directory, kStartedFile);
  output.readable_results = output.results_directory = ResultsOf(run, first);
  if (!output.results_directory.empty()) router_.SetOwner(output.results_directory, first.host);
  return output;
}

std::string SshHosts::ResultsOf(const RunHandle& run, const PlacedRank& first) {
  if (run.assignment == nullptr) return {};
  const absl::StatusOr<agent::v1::Assignment> own =
      OnHost(*run.assignment, config_.cluster, first.directory);
  return own.ok() ? own->spec().results_directory() : std::string();
}

void SshHosts::Forget(const RunHandle& run) {
  const absl::StatusOr<LaunchFiles> files = RecordOf(run.run_key).Read();
  if (files.ok() && !files->placement.empty()) {
    const std::string results = ResultsOf(run, files->placement[0]);
    if (!results.empty()) router_.RemoveOwner(results);
  }
  scheduler_->Forget(run.run_key);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Places>> CreateSshHosts(const MachinesConfig& config,
                                                       const std::string& state_dir,
                                                       RunBoard* board) {
  const std::string runs_directory = state_dir + "/runs";
  const std::string hosts_directory = state_dir + "/hosts";
  hosts::LocalHost host;
  if (absl::Status s = host.MakeManyDirectories({runs_directory, hosts_directory}, 0700); !s.ok())
    return s;
  auto made = std::make_unique<SshHosts>(config, runs_directory, hosts_directory, state_dir, board);
  if (absl::Status s = made->Start(); !s.ok()) return s;
  return made;
}

}  // namespace muster::machines
