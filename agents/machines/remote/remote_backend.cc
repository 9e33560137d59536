#include "agents/machines/remote/remote_backend.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <filesystem>
#include <utility>

#include "absl/time/clock.h"
#include "agents/core/batch_output.h"
#include "agents/core/job_storage.h"
#include "agents/core/launch_refusal.h"
#include "agents/files/shell_variables.h"
#include "agents/machines/answers.h"
#include "agents/machines/launch_outcome.h"
#include "agents/machines/remote/host_router.h"
#include "agents/machines/remote/rank_spec.h"
#include "agents/machines/remote/remote_answers.h"
#include "agents/machines/remote/remote_scheduler.h"
#include "agents/machines/results_name.h"
#include "agents/machines/run_board.h"
#include "agents/machines/run_request.h"
#include "agents/machines/verdict.h"
#include "contract/message_of.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

using agents::LaunchOutcome;
using agents::LookupOutcome;
using agents::ObserveOutcome;
using agents::RunHandle;

// For the first word of every host; those that are slower are down until they answer.
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

// Stands for the run's directory on a host where none is chosen yet.
constexpr char kSomeHost[] = "/HOST/runs/";

class RemoteBackend : public agents::Backend {
 public:
  RemoteBackend(MachinesConfig config, std::string runs_directory, std::string hosts_directory)
      : config_(std::move(config)),
        runs_directory_(std::move(runs_directory)),
        hosts_directory_(std::move(hosts_directory)) {}

  absl::Status Start();

  absl::Status Probe() override { return absl::OkStatus(); }
  absl::StatusOr<v1::Inventory> Inventory() override {
    v1::Inventory inventory = InventoryOf(scheduler_->load(), config_.cluster);
    inventory.set_takes_uploads(config_.files != nullptr);
    inventory.set_takes_shell_environment(config_.files != nullptr);
    return inventory;
  }
  v1::ClusterChecks Check() override { return ChecksOf(scheduler_->load()); }
  absl::StatusOr<v1::ClusterDetails> Describe(bool /*with_jobs*/) override {
    return DetailsOf(scheduler_->load());
  }
  absl::StatusOr<v1::JobPlan> Plan(const v1::JobSpec& spec, const std::string& user) override;
  absl::Status Adopt(const std::vector<RunHandle>& runs) override;
  std::vector<LaunchOutcome> Launch(const agents::Assignments& runs) override {
    return agents::OneByOne(runs, [this](const auto& run) { return LaunchOne(*run); });
  }
  LookupOutcome Lookup(const RunHandle& run) override;
  ObserveOutcome Observe(const std::vector<RunHandle>& runs) override;
  std::vector<absl::Status> End(const std::vector<RunHandle>& runs) override {
    for (const RunHandle& run : runs) scheduler_->Cancel(run.run_key);
    return std::vector<absl::Status>(runs.size());
  }
  std::vector<absl::Status> Hold(const std::vector<RunHandle>& runs, bool held) override {
    for (const RunHandle& run : runs) scheduler_->SetHeld(run.run_key, held);
    return std::vector<absl::Status>(runs.size());
  }
  agents::FenceOutcome Fence(const RunHandle& run) override;
  agents::RunOutput OpenLogs(const RunHandle& run) override;
  std::vector<absl::Status> Forget(const std::vector<RunHandle>& runs) override;
  // A directory is there or is not: look-ups need no grace.
  agents::Capabilities capabilities() override {
    return {.output_host = &router_, .allow_starts = [this] { scheduler_->AllowStarts(); }};
  }
  absl::Duration ObserveInterval() const override { return kFullReportInterval; }
  void SetWaker(std::function<void()> wake) override { board_.SetWaker(std::move(wake)); }
  bool TakeInventoryNews() override { return scheduler_->TakeNews(); }
  std::map<std::string, uint64_t> SchedulerCalls() const override {
    return {{"muster-supervisor", scheduler_->ranks_started()}};
  }

 private:
  LaunchOutcome LaunchOne(const agent::v1::Assignment& assignment);
  // The directory of the results of a run of which rank 0 is there; empty: it has none.
  std::string ResultsOf(const RunHandle& run, const PlacedRank& first);
  RunRules Rules() const {
    return {.cancel_grace = config_.cancel_grace, .limits = config_.limits};
  }
  LaunchRecord RecordOf(const std::string& run_key) const {
    return LaunchRecord(runs_directory_ + "/" + run_key);
  }
  // Why the cluster can never run the job.
  std::optional<Misfit> RefusalOf(const v1::JobSpec& spec, const Request& request) const;
  void Enqueue(std::shared_ptr<const agent::v1::Assignment> assignment, uint64_t order, bool held);

  const MachinesConfig config_;
  const std::string runs_directory_;
  const std::string hosts_directory_;
  std::atomic<uint64_t> next_order_ = 1;
  RunBoard board_;
  HostRouter router_;
  std::unique_ptr<RemoteScheduler> scheduler_;
};

absl::Status RemoteBackend::Start() {
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
       .read_hosts = config_.read_hosts},
      config_.hosts, &board_, &router_);
  if (!scheduler.ok()) return scheduler.status();
  scheduler_ = *std::move(scheduler);
  scheduler_->AwaitHosts(kFirstWord);
  return absl::OkStatus();
}

// ---- what people ask

absl::StatusOr<v1::JobPlan> RemoteBackend::Plan(const v1::JobSpec& spec, const std::string& user) {
  agent::v1::Assignment assignment;
  assignment.set_run_key(kPlannedRun);
  assignment.set_user(user);
  *assignment.mutable_spec() = spec;
  const std::string directory = std::string(kSomeHost) + kPlannedRun;
  const absl::StatusOr<agent::v1::Assignment> own = OnHost(assignment, config_.cluster, directory);
  if (!own.ok()) return PlanRefusal(agents::WhatIsWrong(own.status()));
  const RemoteScheduler::Load load = scheduler_->load();
  const QueuedRun run = QueuedFrom(assignment, /*order=*/0, /*held=*/false, config_.cancel_grace);
  const Request& request = run.request;
  const std::vector<std::string> addresses(std::max<size_t>(spec.nodes(), 1), "HOST");
  RunRules rules = Rules();
  rules.container_tool = ContainersOf(load).tool;
  v1::JobPlan plan = PlanRun(RankSpec(*own, config_.cluster, directory, 0, addresses, rules),
                             RefusalOf(spec, request), request, load.ledger, load.outlook.waiting,
                             scheduler_->WaitOf(run), "cluster");
  if (const absl::Status free = CheckResultsName(spec, config_.files); !free.ok()) {
    v1::ClusterCheck* check = plan.add_checks();
    check->set_subject("the directory of results");
    check->set_result(v1::CHECK_RESULT_WARN);
    check->set_seen(agents::WhatIsWrong(free));
    check->set_remedy(kResultsNameRemedy);
  }
  if (auto output = agents::WarnOfBatchOutput(spec); output.has_value())
    *plan.add_checks() = *std::move(output);
  return plan;
}

std::optional<Misfit> RemoteBackend::RefusalOf(const v1::JobSpec& spec,
                                               const Request& request) const {
  if (std::optional<Misfit> misfit = CheckPool(spec)) return misfit;
  if (std::optional<Misfit> misfit = CheckShare(request)) return misfit;
  const RemoteScheduler::Load load = scheduler_->load();
  if (std::optional<Misfit> misfit = CheckImage(spec, ContainersOf(load))) return misfit;
  // A host that has not answered yet may have what is wanted, whatever it had once.
  const bool all_told = std::all_of(load.hosts.begin(), load.hosts.end(),
                                    [](const HostView& host) { return host.has_told; });
  if (!all_told && request.nodes <= load.hosts.size()) return std::nullopt;
  return load.ledger.Refusal(request);
}

// ---- runs

absl::Status RemoteBackend::Adopt(const std::vector<RunHandle>& runs) {
  std::map<std::string, const RunHandle*> held;
  for (const RunHandle& run : runs) held[run.run_key] = &run;
  std::vector<PlacedRun> placed;
  std::vector<WaitingRun> waiting;
  std::vector<std::pair<std::filesystem::file_time_type, FinishedRun>> finished;
  uint64_t last_order = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(runs_directory_, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string run_key = entry->path().filename().string();
    const absl::StatusOr<LaunchFiles> files = RecordOf(run_key).Read();
    if (!files.ok()) continue;  // Lookup and Observe say what is wrong with it
    last_order = std::max(last_order, files->order);
    const auto handle = held.find(run_key);
    const bool is_wanted = handle != held.end();
    if (!files->placement.empty() && (is_wanted || files->assignment != nullptr)) {
      if (is_wanted) board_.PutUnseen(run_key);
      placed.push_back(
          PlacedFrom(run_key, *files, is_wanted ? handle->second : nullptr, config_.cancel_grace));
    } else if (!files->placement.empty()) {
      std::error_code ignored;
      finished.emplace_back(std::filesystem::last_write_time(entry->path(), ignored),
                            FinishedRun{.run_key = run_key, .placement = files->placement});
    } else if (!is_wanted) {
      RecordOf(run_key).Remove();
    } else if (files->assignment != nullptr && handle->second->state == v1::RUN_STATE_PENDING) {
      board_.PutQuietly(PendingVerdict({.run_key = run_key, .hostname = "", .now = absl::Now()}));
      waiting.push_back({.run = QueuedFrom(*files->assignment, files->order, handle->second->held,
                                           config_.cancel_grace),
                         .assignment = files->assignment});
    }
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(), fmt::format("cannot list \"{}\"", runs_directory_));
  }
  next_order_ = last_order + 1;
  std::sort(finished.begin(), finished.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::deque<FinishedRun> oldest_first;
  for (auto& [time, run] : finished) oldest_first.push_back(std::move(run));
  scheduler_->Start(std::move(placed), std::move(waiting), std::move(oldest_first),
                    /*hold_starts=*/!runs.empty());
  return absl::OkStatus();
}

LaunchOutcome RemoteBackend::LaunchOne(const agent::v1::Assignment& assignment) {
  const std::string& run_key = assignment.run_key();
  if (board_.Contains(run_key)) return LaunchedAs("the cluster has the run already");
  const LaunchRecord record = RecordOf(run_key);
  const absl::StatusOr<LaunchFiles> files = record.Read();
  if (!files.ok()) {
    return Refused(
        v1::FAILURE_CODE_LAUNCH_FAILED, v1::FAILURE_CLASS_INFRA,
        {.detail = MessageOf(files.status()),
         .remedy = "Tell the cluster's operator: the agent's state directory is damaged."});
  }
  if (!files->placement.empty()) return LaunchedAs("the cluster has had the run already");
  if (const auto misfit = RefusalOf(assignment.spec(), RequestOf(assignment)))
    return Refused(*misfit);
  const absl::StatusOr<agent::v1::Assignment> whole =
      uploads::WithShellVariables(assignment, config_.files);
  if (!whole.ok()) return uploads::NotLaunched(whole.status());
  const absl::StatusOr<agent::v1::Assignment> own =
      OnHost(*whole, config_.cluster, kSomeHost + run_key);
  if (!own.ok()) {
    return Refused(v1::FAILURE_CODE_JOB_INVALID, v1::FAILURE_CLASS_CONFIG,
                   {.detail = agents::WhatIsWrong(own.status())});
  }
  const bool has_files = assignment.spec().uploads_size() > 0;
  if (has_files && config_.files == nullptr) {
    return Refused(v1::FAILURE_CODE_FILES_NOT_TAKEN, v1::FAILURE_CLASS_CONFIG, {});
  }
  const uint64_t order = next_order_++;
  if (const absl::Status created = record.Create(*whole, order); !created.ok()) {
    return Refused(
        v1::FAILURE_CODE_LAUNCH_FAILED, v1::FAILURE_CLASS_INFRA,
        {.detail = MessageOf(created),
         .remedy = absl::IsResourceExhausted(created)
                       ? "Free disk space on the agent's machine and submit the job again."
                       : "Tell the cluster's operator."});
  }
  Enqueue(std::make_shared<agent::v1::Assignment>(*whole), order, assignment.held());
  return LaunchedAs(has_files ? "waits for its files, and has its place in the cluster's queue"
                              : "entered the cluster's queue");
}

void RemoteBackend::Enqueue(std::shared_ptr<const agent::v1::Assignment> assignment, uint64_t order,
                            bool held) {
  const std::string& run_key = assignment->run_key();
  board_.PutQuietly(PendingVerdict({.run_key = run_key, .hostname = "", .now = absl::Now()}));
  QueuedRun run = QueuedFrom(*assignment, order, held, config_.cancel_grace);
  scheduler_->Enqueue({.run = std::move(run), .assignment = std::move(assignment)});
}

LookupOutcome RemoteBackend::Lookup(const RunHandle& run) {
  LookupOutcome outcome;
  const LaunchRecord record = RecordOf(run.run_key);
  const absl::StatusOr<LaunchFiles> files = record.Read();
  if (!files.ok()) {
    outcome.kind = LookupOutcome::Kind::kCouldNotAsk;
    outcome.evidence = AgentEvidence(MessageOf(files.status()));
  } else if (!files->placement.empty() || board_.Contains(run.run_key)) {
    outcome.kind = LookupOutcome::Kind::kFound;
    outcome.evidence = AgentEvidence(files->placement.empty()
                                         ? "in the cluster's queue"
                                         : fmt::format("\"{}\" shows its hosts", record.path()));
  } else {
    outcome.kind = LookupOutcome::Kind::kAbsent;
    outcome.evidence = AgentEvidence(fmt::format(
        "the cluster's queue does not have the run, and \"{}\" shows no hosts", record.path()));
  }
  return outcome;
}

ObserveOutcome RemoteBackend::Observe(const std::vector<RunHandle>& runs) {
  ObserveOutcome outcome;
  std::vector<RunHandle> unknown;
  outcome.observations = board_.Report(runs, absl::Now(), &unknown);
  for (const RunHandle& run : unknown) {
    const LaunchRecord record = RecordOf(run.run_key);
    const absl::StatusOr<LaunchFiles> files = record.Read();
    if (!files.ok()) {
      outcome.scheduler.Update(files.status());
    } else if (files->assignment != nullptr && files->placement.empty() &&
               run.state <= v1::RUN_STATE_PENDING) {
      Enqueue(files->assignment, files->order, run.held);
    } else if (!files->placement.empty()) {
      // Its record could not be read when the agent was started.
      board_.PutUnseen(run.run_key);
      scheduler_->Adopt(PlacedFrom(run.run_key, *files, &run, config_.cancel_grace));
    } else {
      outcome.observations.push_back(
          LostVerdict({.run_key = run.run_key, .hostname = "", .now = absl::Now()}, record.path()));
    }
  }
  return outcome;
}

// The hosts of a run are on disk before any of them is asked to start it.
agents::FenceOutcome RemoteBackend::Fence(const RunHandle& run) {
  using Kind = agents::FenceOutcome::Kind;
  if (auto known = board_.Fence(run.run_key)) return *std::move(known);
  const LaunchRecord record = RecordOf(run.run_key);
  const absl::StatusOr<LaunchFiles> files = record.Read();
  if (!files.ok()) return {Kind::kNotYet, AgentEvidence(MessageOf(files.status()))};
  if (!files->placement.empty()) {
    return {Kind::kNotYet,
            AgentEvidence(fmt::format("\"{}\" shows the run's hosts, which have not told of it yet",
                                      record.path()))};
  }
  return {Kind::kProved,
          AgentEvidence(fmt::format("\"{}\" shows no hosts: none was ever asked to start the run",
                                    record.path()))};
}

agents::RunOutput RemoteBackend::OpenLogs(const RunHandle& run) {
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

std::string RemoteBackend::ResultsOf(const RunHandle& run, const PlacedRank& first) {
  if (run.assignment == nullptr) return {};
  const absl::StatusOr<agent::v1::Assignment> own =
      OnHost(*run.assignment, config_.cluster, first.directory);
  return own.ok() ? own->spec().results_directory() : std::string();
}

std::vector<absl::Status> RemoteBackend::Forget(const std::vector<RunHandle>& runs) {
  for (const RunHandle& run : runs) {
    const absl::StatusOr<LaunchFiles> files = RecordOf(run.run_key).Read();
    if (files.ok() && !files->placement.empty()) {
      const std::string results = ResultsOf(run, files->placement[0]);
      if (!results.empty()) router_.RemoveOwner(results);
    }
    scheduler_->Forget(run.run_key);
  }
  return std::vector<absl::Status>(runs.size());
}

}  // namespace

absl::StatusOr<std::unique_ptr<agents::Backend>> CreateRemoteBackend(
    const MachinesConfig& config, const std::string& runs_directory,
    const std::string& hosts_directory) {
  auto backend = std::make_unique<RemoteBackend>(config, runs_directory, hosts_directory);
  if (absl::Status s = backend->Start(); !s.ok()) return s;
  return backend;
}

}  // namespace muster::machines
