// The Backend contract on top of the places where runs go.
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "agents/core/job_storage.h"
#include "agents/files/shell_variables.h"
#include "agents/machines/answers.h"
#include "agents/machines/launch_outcome.h"
#include "agents/machines/machines.h"
#include "agents/machines/places.h"
#include "agents/machines/run_board.h"
#include "agents/machines/run_place.h"
#include "agents/machines/run_users.h"
#include "agents/machines/supervisors.h"
#include "agents/users/run_as_host.h"
#include "contract/message_of.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

using agents::LaunchOutcome;
using agents::LookupOutcome;
using agents::ObserveOutcome;
using agents::RunHandle;

class MachinesBackend : public agents::Backend {
 public:
  MachinesBackend(MachinesConfig config, std::unique_ptr<RunBoard> board,
                  std::unique_ptr<Places> places)
      : config_(std::move(config)), board_(std::move(board)), places_(std::move(places)) {}

  absl::Status Probe() override { return places_->Probe(); }
  absl::StatusOr<v1::Inventory> Inventory() override {
    v1::Inventory inventory = InventoryOf(places_->scheduler().load(), places_->Identity());
    inventory.set_takes_uploads(config_.files != nullptr);
    inventory.set_takes_shell_environment(config_.files != nullptr);
    inventory.set_takes_secrets(true);
    return inventory;
  }
  v1::ClusterChecks Check() override { return places_->Check(); }
  absl::StatusOr<v1::ClusterDetails> Describe(bool /*with_jobs*/) override {
    return DetailsOf(places_->scheduler().load());
  }
  absl::StatusOr<v1::JobPlan> Plan(const v1::JobSpec& spec, const std::string& user) override;
  absl::Status Adopt(const std::vector<RunHandle>& runs) override {
    const absl::StatusOr<uint64_t> last_order = places_->Adopt(runs);
    if (last_order.ok()) next_order_ = *last_order + 1;
    return last_order.status();
  }
  std::vector<LaunchOutcome> Launch(const agents::Assignments& runs) override {
    return agents::OneByOne(runs, [this](const auto& run) { return LaunchOne(*run); });
  }
  LookupOutcome Lookup(const RunHandle& run) override;
  ObserveOutcome Observe(const std::vector<RunHandle>& runs) override;
  std::vector<absl::Status> End(const std::vector<RunHandle>& runs) override {
    return agents::OneByOne(runs,
                            [this](const RunHandle& run) { return places_->Cancel(run.run_key); });
  }
  std::vector<absl::Status> Hold(const std::vector<RunHandle>& runs, bool held) override {
    for (const RunHandle& run : runs) places_->scheduler().SetHeld(run.run_key, held);
    return std::vector<absl::Status>(runs.size());
  }
  agents::RunOutput OpenLogs(const RunHandle& run) override { return places_->OpenLogs(run); }
  std::vector<absl::Status> Forget(const std::vector<RunHandle>& runs) override {
    for (const RunHandle& run : runs) places_->Forget(run);
    return std::vector<absl::Status>(runs.size());
  }
  agents::FenceOutcome Fence(const RunHandle& run) override {
    return places_->Fence(run.run_key, board_->Fence(run.run_key));
  }
  // A directory is there or is not: look-ups need no grace.
  agents::Capabilities capabilities() override {
    return {.output_host = places_->output_host(),
            .allow_starts = [this] { places_->scheduler().AllowStarts(); },
            .send_signal =
                [this](const RunHandle& run, const agents::RunSignal& signal) {
                  const bool first_only = signal.target == v1::SIGNAL_TARGET_BATCH;
                  return places_->Signal(run.run_key,
                                         {.number = signal.number, .first_only = first_only});
                },
            .fence_delay = places_->fence_delay(),
            .renew_leases =
                places_->fence_delay() > absl::ZeroDuration()
                    ? [this](absl::Duration remaining) { return places_->RenewLeases(remaining); }
                    : std::function<absl::Status(absl::Duration)>()};
  }
  absl::Duration ObserveInterval() const override { return kFullReportInterval; }
  void SetWaker(std::function<void()> wake) override { board_->SetWaker(std::move(wake)); }
  bool TakeInventoryNews() override { return places_->TakeNews(); }
  std::map<std::string, uint64_t> SchedulerCalls() const override {
    return {{"muster-supervisor", places_->scheduler().started()}};
  }

 private:
  LaunchOutcome LaunchOne(const agent::v1::Assignment& assignment);

  const MachinesConfig config_;
  std::atomic<uint64_t> next_order_ = 1;
  const std::unique_ptr<RunBoard> board_;
  const std::unique_ptr<Places> places_;
};

absl::StatusOr<v1::JobPlan> MachinesBackend::Plan(const v1::JobSpec& spec,
                                                  const std::string& user) {
  agent::v1::Assignment assignment;
  assignment.set_run_key(kPlannedRun);
  assignment.set_user(user);
  *assignment.mutable_spec() = spec;
  const absl::StatusOr<agent::v1::Assignment> resolved = places_->Resolve(assignment);
  if (!resolved.ok()) return PlanRefusal(agents::WhatIsWrong(resolved.status()));
  const Load load = places_->scheduler().load();
  const QueuedRun run = QueuedFrom(assignment, /*order=*/0, /*held=*/false, config_.cancel_grace);
  v1::JobPlan plan =
      PlanRun(places_->SpecOf(*resolved), places_->RefusalOf(assignment), run.request, load.ledger,
              load.outlook.waiting, places_->scheduler().WaitOf(run), places_->Word());
  if (const absl::Status status = places_->AddToPlan(spec, resolved->spec(), &plan); !status.ok())
    return PlanRefusal(agents::WhatIsWrong(status));
  return plan;
}

LaunchOutcome MachinesBackend::LaunchOne(const agent::v1::Assignment& assignment) {
  const std::string& run_key = assignment.run_key();
  const std::string_view word = places_->Word();
  if (board_->Contains(run_key)) return LaunchedAs(fmt::format("the {} has the run already", word));
  const absl::StatusOr<RunTrace> trace = places_->Find(run_key);
  // The run may be live: only what can be read proves that it is not.
  if (!trace.ok()) return UnclearBecause(trace.status());
  if (trace->has_begun) return LaunchedAs(fmt::format("the {} has had the run already", word));
  if (const auto misfit = places_->RefusalOf(assignment))
    return misfit->may_pass ? Deferred(*misfit) : Refused(*misfit);
  absl::StatusOr<agent::v1::Assignment> whole =
      uploads::WithShellVariables(assignment, config_.files);
  if (!whole.ok()) return uploads::NotLaunched(whole.status());
  const absl::StatusOr<agent::v1::Assignment> resolved = places_->Resolve(*whole);
  if (!resolved.ok()) return RefusedBecause(v1::FAILURE_CODE_JOB_INVALID, resolved.status());
  const bool has_files = assignment.spec().uploads_size() > 0;
  if (has_files && config_.files == nullptr)
    return Refused(v1::FAILURE_CODE_FILES_NOT_TAKEN, v1::FAILURE_CLASS_CONFIG, {});
  std::optional<LaunchOutcome> refusal = places_->Accept(
      std::make_shared<agent::v1::Assignment>(*std::move(whole)), *resolved, next_order_++);
  if (refusal.has_value()) return *std::move(refusal);
  return LaunchedAs(fmt::format("{} the {}'s queue",
                                has_files ? "waits for its files, and has its place in" : "entered",
                                word));
}

LookupOutcome MachinesBackend::Lookup(const RunHandle& run) {
  LookupOutcome outcome;
  const absl::StatusOr<RunTrace> trace = places_->Find(run.run_key);
  if (!trace.ok()) {
    outcome.kind = LookupOutcome::Kind::kCouldNotAsk;
    outcome.evidence = AgentEvidence(MessageOf(trace.status()));
  } else if (trace->has_begun || board_->Contains(run.run_key)) {
    outcome.kind = LookupOutcome::Kind::kFound;
    outcome.external_id = trace->external_id;
    outcome.evidence = AgentEvidence(
        trace->has_begun ? fmt::format("\"{}\" shows its {}", trace->path, trace->sign)
                         : fmt::format("in the {}'s queue", places_->Word()));
  } else {
    outcome.kind = LookupOutcome::Kind::kAbsent;
    outcome.evidence =
        AgentEvidence(fmt::format("the {}'s queue does not have the run, and \"{}\" shows no {}",
                                  places_->Word(), trace->path, trace->sign));
  }
  return outcome;
}

ObserveOutcome MachinesBackend::Observe(const std::vector<RunHandle>& runs) {
  ObserveOutcome outcome;
  std::vector<RunHandle> unknown;
  outcome.observations = board_->Report(runs, absl::Now(), &unknown);
  for (const RunHandle& run : unknown)
    outcome.scheduler.Update(places_->Observe(run, &outcome.observations));
  return outcome;
}

}  // namespace

absl::StatusOr<std::unique_ptr<agents::Backend>> CreateMachinesBackend(
    const MachinesConfig& config, const std::string& state_dir) {
  MachinesConfig complete = config;
  if (complete.supervisor_path.empty()) complete.supervisor_path = DefaultSupervisorPath();
  if (complete.run_as_helper.empty()) complete.run_as_helper = users::DefaultRunAsPath();
  auto board = std::make_unique<RunBoard>();
  absl::StatusOr<std::unique_ptr<Places>> places =
      config.hosts.empty() ? CreateOwnMachine(complete, state_dir, board.get())
                           : CreateSshHosts(complete, state_dir, board.get());
  if (!places.ok()) return places.status();
  return std::make_unique<MachinesBackend>(std::move(complete), std::move(board),
                                           *std::move(places));
}

}  // namespace muster::machines
