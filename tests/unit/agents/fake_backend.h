// A cluster that does what the test says.
#ifndef MUSTER_TESTS_UNIT_AGENTS_FAKE_BACKEND_H_
#define MUSTER_TESTS_UNIT_AGENTS_FAKE_BACKEND_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agents/core/backend.h"
#include "agents/hosts/local_host.h"
#include "tests/unit/agents/eventually.h"

namespace muster::agents {

struct ClusterState {
  // Set by the test.
  LaunchOutcome::Kind launch = LaunchOutcome::Kind::kLaunched;
  FenceOutcome::Kind fence = FenceOutcome::Kind::kNotYet;
  bool launches_hang = false;
  bool cancels_hang = false;
  bool observes_hang = false;
  bool has_output_host = false;     // what runs leave is on a host of its own
  bool files_hang = false;          // on that host
  bool failures_have_logs = false;  // in which the cause may be
  size_t max_launch_batch = 1;
  // The answer to each question for usage; none if the cluster is not to be asked.
  std::optional<absl::StatusOr<UsageByRun>> usage;
  size_t max_end_batch = 1;
  absl::Status probe;
  absl::Status inventory;
  absl::Status scheduler;
  absl::Status hold;
  std::map<std::string, absl::Status> cancels;  // that fail, by key
  absl::StatusOr<v1::ClusterDetails> details = v1::ClusterDetails();
  bool checks_hang = false;
  std::map<std::string, v1::RunState> runs;  // launched runs, by key, as observations tell them

  // The agent's calls.
  std::vector<std::string> launched;
  std::vector<size_t> batches;         // runs in each Launch
  std::vector<size_t> cancel_batches;  // likewise End, and Hold
  std::vector<size_t> hold_batches;
  std::vector<std::string> looked_up;
  std::vector<std::string> fenced;
  std::vector<std::string> canceled;
  std::vector<std::string> forgotten;
  std::vector<std::pair<std::string, bool>> holds;  // run keys, and whether to hold
  int checks_begun = 0;
  int inventories = 0;
  bool inventory_news = false;
  std::vector<std::string> adopted;
  std::function<void()> wake;
};

// The cluster outlives agents: several backends may be of one cluster, one after another.
class FakeBackend : public Backend {
 public:
  FakeBackend(Shared<ClusterState>* cluster, std::string log_dir)
      : cluster_(*cluster), log_dir_(std::move(log_dir)) {}

  absl::Status Probe() override {
    return cluster_.With([](ClusterState& state) { return state.probe; });
  }
  absl::StatusOr<v1::Inventory> Inventory() override {
    const absl::Status status = cluster_.With([](ClusterState& state) {
      ++state.inventories;
      return state.inventory;
    });
    if (!status.ok()) return status;
    v1::Inventory inventory;
    inventory.set_identity("fake");
    return inventory;
  }
  v1::ClusterChecks Check() override {
    cluster_.With([](ClusterState& state) { ++state.checks_begun; });
    cluster_.Eventually([](ClusterState& state) { return !state.checks_hang; });
    v1::ClusterChecks checks;
    checks.add_checks()->set_subject("fake \xFF");
    return checks;
  }
  absl::StatusOr<v1::ClusterDetails> Describe(bool /*with_jobs*/) override {
    return cluster_.With([](ClusterState& state) { return state.details; });
  }
  absl::StatusOr<v1::JobPlan> Plan(const v1::JobSpec& spec, const std::string& user) override {
    v1::JobPlan plan;
    plan.set_submission(user + " runs " + spec.name());
    return plan;
  }
  absl::Status Adopt(const std::vector<RunHandle>& runs) override {
    cluster_.With([&](ClusterState& state) {
      for (const RunHandle& run : runs) state.adopted.push_back(run.run_key);
    });
    return absl::OkStatus();
  }
  std::vector<LaunchOutcome> Launch(const Assignments& runs) override {
    cluster_.With([&](ClusterState& state) { state.batches.push_back(runs.size()); });
    return OneByOne(runs, [this](const auto& run) { return LaunchOne(*run); });
  }
  LaunchOutcome LaunchOne(const agent::v1::Assignment& assignment) {
    const std::string& key = assignment.run_key();
    LaunchOutcome outcome;
    cluster_.With([&](ClusterState& state) {
      state.launched.push_back(key);
      outcome.kind = state.launch;
      if (state.launch == LaunchOutcome::Kind::kLaunched) {
        state.runs.emplace(key, v1::RUN_STATE_PENDING);
      }
    });
    cluster_.Eventually([](ClusterState& state) { return !state.launches_hang; });
    outcome.external_id = "ext-" + key;
    outcome.failure.set_message("no such pool");
    return outcome;
  }
  decltype(Capabilities::usage_of) UsageOf() {
    return [this](const std::vector<RunHandle>&) {
      return cluster_.With([](ClusterState& state) { return *state.usage; });
    };
  }
  Capabilities capabilities() override {
    return cluster_.With([this](ClusterState& state) {
      return Capabilities{.max_launch_batch = state.max_launch_batch,
                          .max_end_batch = state.max_end_batch,
                          .lookup_grace = absl::Milliseconds(50),
                          .output_host = state.has_output_host ? &output_host_ : nullptr,
                          .usage_of = state.usage.has_value() ? UsageOf() : nullptr};
    });
  }
  LookupOutcome Lookup(const RunHandle& run) override {
    return cluster_.With([&](ClusterState& state) {
      state.looked_up.push_back(run.run_key);
      LookupOutcome outcome;
      outcome.kind = state.runs.contains(run.run_key) ? LookupOutcome::Kind::kFound
                                                      : LookupOutcome::Kind::kAbsent;
      return outcome;
    });
  }
  FenceOutcome Fence(const RunHandle& run) override {
    return cluster_.With([&](ClusterState& state) {
      state.fenced.push_back(run.run_key);
      FenceOutcome outcome;
      outcome.kind = state.fence;
      outcome.evidence.set_detail("as the test says");
      return outcome;
    });
  }
  ObserveOutcome Observe(const std::vector<RunHandle>& runs) override {
    cluster_.Eventually([](ClusterState& state) { return !state.observes_hang; });
    return cluster_.With([&](ClusterState& state) {
      ObserveOutcome outcome;
      outcome.scheduler = state.scheduler;
      for (const RunHandle& run : runs) {
        if (!state.scheduler.ok() || !state.runs.contains(run.run_key)) continue;
        Observation seen;
        seen.run_key = run.run_key;
        seen.state = state.runs[run.run_key];
        if (seen.state == v1::RUN_STATE_FAILED && state.failures_have_logs)
          seen.failure.emplace().set_failure_class(v1::FAILURE_CLASS_PROGRAM);
        outcome.observations.push_back(std::move(seen));
      }
      return outcome;
    });
  }
  std::vector<absl::Status> End(const std::vector<RunHandle>& runs) override {
    cluster_.With([&](ClusterState& state) { state.cancel_batches.push_back(runs.size()); });
    cluster_.Eventually([](ClusterState& state) { return !state.cancels_hang; });
    return OneByOne(runs, [this](const RunHandle& run) { return EndOne(run); });
  }
  absl::Status EndOne(const RunHandle& run) {
    return cluster_.With([&](ClusterState& state) {
      state.canceled.push_back(run.run_key);
      if (state.cancels.contains(run.run_key)) return state.cancels[run.run_key];
      state.runs[run.run_key] = v1::RUN_STATE_CANCELED;
      if (state.wake) state.wake();
      return absl::OkStatus();
    });
  }
  std::vector<absl::Status> Hold(const std::vector<RunHandle>& runs, bool held) override {
    return cluster_.With([&](ClusterState& state) {
      state.hold_batches.push_back(runs.size());
      for (const RunHandle& run : runs) state.holds.emplace_back(run.run_key, held);
      return std::vector<absl::Status>(runs.size(), state.hold);
    });
  }
  RunOutput OpenLogs(const RunHandle& run) override {
    RunOutput output;
    output.logs = {{0, v1::LOG_STREAM_STDOUT, log_dir_ + "/" + run.run_key}};
    output.may_have_gpus = MayHaveGpus(run);
    return output;
  }
  std::vector<absl::Status> Forget(const std::vector<RunHandle>& runs) override {
    return cluster_.With([&](ClusterState& state) {
      for (const RunHandle& run : runs) state.forgotten.push_back(run.run_key);
      return std::vector<absl::Status>(runs.size());
    });
  }
  absl::Duration ObserveInterval() const override { return absl::Milliseconds(20); }
  bool TakeInventoryNews() override {
    return cluster_.With(
        [](ClusterState& state) { return std::exchange(state.inventory_news, false); });
  }
  void SetWaker(std::function<void()> wake) override {
    cluster_.With([&](ClusterState& state) { state.wake = std::move(wake); });
  }
  std::map<std::string, uint64_t> SchedulerCalls() const override { return {{"fake", 1}}; }

 private:
  // This machine, except for its files, which may hang.
  class OutputHost : public hosts::LocalHost {
   public:
    explicit OutputHost(Shared<ClusterState>* cluster) : cluster_(*cluster) {}
    std::vector<absl::StatusOr<hosts::FileInfo>> StatMany(
        const std::vector<std::string>& paths) override {
      cluster_.Eventually([](ClusterState& state) { return !state.files_hang; });
      return LocalHost::StatMany(paths);
    }

   private:
    Shared<ClusterState>& cluster_;
  };

  Shared<ClusterState>& cluster_;
  const std::string log_dir_;
  OutputHost output_host_{&cluster_};
};

}  // namespace muster::agents

#endif  // MUSTER_TESTS_UNIT_AGENTS_FAKE_BACKEND_H_
