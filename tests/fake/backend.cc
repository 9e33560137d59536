#include "tests/fake/backend.h"

#include <algorithm>
#include <utility>

#include "agents/core/launch_refusal.h"
#include "contract/checks.h"
#include "contract/failures.h"
#include "contract/sentences.h"
#include "fmt/format.h"

namespace muster::fake {
namespace {

using agents::FenceOutcome;
using agents::LaunchOutcome;
using agents::LookupOutcome;
using agents::Observation;
using Phase = Cluster::Phase;

// The absence of a job from queue and history is believed after this time without a trace.
constexpr absl::Duration kAbsenceGrace = absl::Seconds(30);

google::protobuf::Timestamp Stamp(absl::Time time) {
  google::protobuf::Timestamp stamp;
  stamp.set_seconds(absl::ToUnixSeconds(time));
  return stamp;
}

// Returns the reason that no node can ever run the job; nothing: some can.
std::optional<v1::Failure> RefusalOf(const v1::JobSpec& spec) {
  for (const v1::GpuRequest& gpus : spec.resources().gpus()) {
    if (gpus.count_millis() <= kGpusPerNode * 1000) continue;
    return contract::MakeFailure(
        v1::FAILURE_CODE_JOB_INVALID, v1::FAILURE_CLASS_CONFIG,
        {.detail = fmt::format("no node has more than {} GPUs", kGpusPerNode),
         .phase = v1::FAILURE_PHASE_LAUNCH});
  }
  return std::nullopt;
}

// The end of a command that was started, as the cluster tells it.
v1::Failure FailureOf(const TrueEnd& end, uint32_t rank) {
  if (end.fault != TrueEnd::Fault::kProgram) {
    const bool is_clusters = end.fault == TrueEnd::Fault::kCluster;
    return contract::MakeFailure(
        is_clusters ? v1::FAILURE_CODE_NODE_LOST : v1::FAILURE_CODE_PREEMPTED,
        is_clusters ? v1::FAILURE_CLASS_INFRA : v1::FAILURE_CLASS_PREEMPTED,
        {.phase = v1::FAILURE_PHASE_COMMAND, .is_retriable = is_clusters});
  }
  v1::ExitStatus exit = end.kind == TrueEnd::Kind::kSignal ? contract::ExitBySignal(end.code)
                                                           : contract::ExitWithCode(end.code);
  exit.set_rank(rank);
  return contract::OwnEnd(exit, {.phase = v1::FAILURE_PHASE_COMMAND});
}

}  // namespace

absl::Status FakeBackend::Ask() {
  ++calls_;
  return cluster_.is_away() ? absl::UnavailableError("the scheduler is away") : absl::OkStatus();
}

v1::Evidence FakeBackend::EvidenceNow(v1::EvidenceSource source, std::string detail) const {
  v1::Evidence evidence;
  evidence.set_source(source);
  evidence.set_detail(std::move(detail));
  *evidence.mutable_observed_at() = Stamp(cluster_.now());
  return evidence;
}

// ---- questions of people

absl::StatusOr<v1::Inventory> FakeBackend::Inventory() {
  if (absl::Status status = Ask(); !status.ok()) return status;
  v1::Inventory inventory;
  inventory.set_identity("a cluster in memory");
  inventory.set_scheduler_version("fake 1");
  v1::Pool* pool = inventory.add_pools();
  pool->set_name("default");
  pool->set_is_default(true);
  pool->set_available(true);
  v1::NodeGroup* nodes = pool->add_node_groups();
  nodes->set_count(4);
  nodes->set_usable_count(4);
  nodes->set_cpus(64);
  nodes->set_memory_bytes(uint64_t{64} << 30);
  (*nodes->mutable_gpus())[""] = kGpusPerNode;
  return inventory;
}

v1::ClusterChecks FakeBackend::Check() {
  v1::ClusterChecks checks;
  const absl::Status answers = Ask();
  *checks.add_checks() = contract::MakeCheck(
      v1::CHECK_CODE_SCHEDULER, answers.ok() ? v1::CHECK_RESULT_OK : v1::CHECK_RESULT_FAIL,
      "the cluster answers", answers.ToString());
  return checks;
}

absl::StatusOr<v1::ClusterDetails> FakeBackend::Describe(bool /*with_jobs*/) {
  if (absl::Status status = Ask(); !status.ok()) return status;
  v1::ClusterDetails details;
  *details.mutable_observed_at() = Stamp(cluster_.now());
  return details;
}

absl::StatusOr<v1::JobPlan> FakeBackend::Plan(const v1::JobSpec& spec, const std::string& user) {
  if (absl::Status status = Ask(); !status.ok()) return status;
  v1::JobPlan plan;
  plan.set_submission(fmt::format("submit {} for {}", spec.name(), user));
  if (const std::optional<v1::Failure> refusal = RefusalOf(spec)) {
    *plan.add_checks() = contract::MakeCheck(v1::CHECK_CODE_NODES, v1::CHECK_RESULT_FAIL,
                                             "some node can run it", refusal->message());
  }
  return plan;
}

// ---- runs

std::vector<LaunchOutcome> FakeBackend::Launch(const agents::Assignments& runs) {
  return agents::OneByOne(runs, [this](const auto& run) { return LaunchOne(*run); });
}

// Asks first, so that a repeated launch is harmless: the scheduler takes any number of jobs.
LaunchOutcome FakeBackend::LaunchOne(const agent::v1::Assignment& run) {
  if (std::optional<v1::Failure> refusal = RefusalOf(run.spec())) {
    return agents::RefusedAs(*std::move(refusal),
                             EvidenceNow(v1::EVIDENCE_SOURCE_AGENT, "no node could run it"));
  }
  LaunchOutcome outcome;
  if (const absl::Status answers = Ask(); !answers.ok()) {
    outcome.kind = LaunchOutcome::Kind::kUnclear;
    outcome.evidence = EvidenceNow(v1::EVIDENCE_SOURCE_SBATCH, "the scheduler is away");
    return outcome;
  }
  const Cluster::Job* job = cluster_.Find(run.run_key());
  if (job == nullptr || !cluster_.Knows(*job)) {
    cluster_.Lift(run.run_key());
    cluster_.Submit(run);
    job = cluster_.Find(run.run_key());
  }
  outcome.kind = LaunchOutcome::Kind::kLaunched;
  outcome.external_id = fmt::format("{}", job->id);
  outcome.evidence = EvidenceNow(v1::EVIDENCE_SOURCE_SBATCH, "the scheduler has the run");
  return outcome;
}

LookupOutcome FakeBackend::Lookup(const agents::RunHandle& run) {
  LookupOutcome outcome;
  outcome.evidence = EvidenceNow(v1::EVIDENCE_SOURCE_SQUEUE, "what the look-up said");
  const Cluster::Job* job = cluster_.Find(run.run_key);
  if (!Ask().ok()) {
    outcome.kind = LookupOutcome::Kind::kCouldNotAsk;
  } else if (job != nullptr && cluster_.Knows(*job)) {
    outcome.kind = LookupOutcome::Kind::kFound;
    outcome.external_id = fmt::format("{}", job->id);
  } else {
    outcome.kind = LookupOutcome::Kind::kAbsent;
  }
  return outcome;
}

FenceOutcome FakeBackend::Fence(const agents::RunHandle& run) {
  using Kind = FenceOutcome::Kind;
  const auto outcome = [this](Kind kind, std::string why) {
    return FenceOutcome{kind, EvidenceNow(v1::EVIDENCE_SOURCE_SQUEUE, std::move(why))};
  };
  if (!Ask().ok()) return outcome(Kind::kNotYet, "the scheduler is away");
  const Cluster::Job* job = cluster_.Find(run.run_key);
  if (job == nullptr || !cluster_.Knows(*job)) {
    cluster_.Fence(run.run_key);
    return outcome(Kind::kNeverBegins,
                   "the run is not there, and its jobs that come late do nothing");
  }
  if (job->phase != Phase::kEnded) return outcome(Kind::kNotYet, "the run has not ended");
  if (job->end.kind == TrueEnd::Kind::kVanished)
    return outcome(Kind::kImpossible,
                   "the run's node is gone, and nothing tells what became of it");
  return outcome(Kind::kEnded, "the run has ended");
}

agents::ObserveOutcome FakeBackend::Observe(const std::vector<agents::RunHandle>& runs) {
  agents::ObserveOutcome outcome;
  outcome.scheduler = Ask();
  for (const agents::RunHandle& run : runs) {
    const Cluster::Job* job = cluster_.Find(run.run_key);
    if (job == nullptr) continue;
    if (auto seen = See(*job)) outcome.observations.push_back(*std::move(seen));
  }
  return outcome;
}

std::optional<Observation> FakeBackend::See(const Cluster::Job& job) {
  // The record of a success is proof by itself; any other end waits for the scheduler.
  const bool succeeded =
      job.has_record && job.end.kind == TrueEnd::Kind::kExit && job.end.code == 0;
  if (succeeded) return DescribeEnd(job);
  if (cluster_.is_away()) return std::nullopt;
  const bool has_end =
      job.has_record || (cluster_.keeps_history() && job.end.kind != TrueEnd::Kind::kVanished);
  if (job.in_queue || has_end) {
    missing_since_.erase(job.run_key);
    switch (job.phase) {
      case Phase::kQueued:
        return Describe(job, v1::RUN_STATE_PENDING);
      case Phase::kStarting:
        return Describe(job, v1::RUN_STATE_STARTING);
      case Phase::kRunning:
        return Describe(job, v1::RUN_STATE_RUNNING);
      case Phase::kSuspended:
        return Describe(job, v1::RUN_STATE_SUSPENDED);
      case Phase::kFinishing:
        return Describe(job, v1::RUN_STATE_FINISHING);
      case Phase::kEnded:
        return DescribeEnd(job);
    }
  }
  const absl::Time since = missing_since_.emplace(job.run_key, cluster_.now()).first->second;
  if (cluster_.now() - since < kAbsenceGrace) return std::nullopt;
  return Describe(job, v1::RUN_STATE_LOST);
}

Observation FakeBackend::Describe(const Cluster::Job& job, v1::RunState state) const {
  Observation seen;
  seen.run_key = job.run_key;
  seen.state = state;
  seen.evidence = EvidenceNow(v1::EVIDENCE_SOURCE_SQUEUE, "as the queue has it");
  seen.external_id = fmt::format("{}", job.id);
  seen.restarts = static_cast<uint32_t>(job.restart);
  if (state == v1::RUN_STATE_PENDING) {
    seen.reason = job.is_held
                      ? contract::MakeReason(v1::STATE_REASON_CODE_HELD)
                      : contract::MakeReason(v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES,
                                             {.detail = "waiting for one of the cluster's slots"});
  }
  if (!job.has_started) return seen;
  for (size_t node = 1; node <= job.programs.size(); ++node)
    seen.nodes.push_back(fmt::format("node-{}", node));
  seen.start_time = job.start_time;
  return seen;
}

Observation FakeBackend::DescribeEnd(const Cluster::Job& job) const {
  const TrueEnd& end = job.end;
  const bool succeeded = end.kind == TrueEnd::Kind::kExit && end.code == 0;
  const bool was_canceled = end.kind == TrueEnd::Kind::kCanceled;
  Observation seen = Describe(job, succeeded      ? v1::RUN_STATE_SUCCEEDED
                                   : was_canceled ? v1::RUN_STATE_CANCELED
                                                  : v1::RUN_STATE_FAILED);
  seen.end_time = job.end_time;
  if (was_canceled) return seen;
  if (end.kind == TrueEnd::Kind::kLeaseEnded) {
    seen.failure = contract::MakeFailure(v1::FAILURE_CODE_LEASE_ENDED, v1::FAILURE_CLASS_INFRA,
                                         {.is_retriable = true});
    return seen;
  }
  if (end.kind == TrueEnd::Kind::kNotStarted) {
    seen.failure = job.programs[job.end_rank].failure;
    return seen;
  }
  seen.exit.emplace().set_rank(job.end_rank);
  if (end.kind == TrueEnd::Kind::kExit) seen.exit->set_code(end.code);
  if (end.kind == TrueEnd::Kind::kSignal) seen.exit->set_signal(end.code);
  if (!succeeded) seen.failure = FailureOf(end, job.end_rank);
  return seen;
}

std::vector<absl::Status> FakeBackend::End(const std::vector<agents::RunHandle>& runs) {
  return agents::OneByOne(runs, [this](const agents::RunHandle& run) {
    absl::Status status = Ask();
    if (status.ok()) cluster_.Cancel(run.run_key);
    return status;
  });
}

std::vector<absl::Status> FakeBackend::Hold(const std::vector<agents::RunHandle>& runs, bool held) {
  return agents::OneByOne(runs, [&](const agents::RunHandle& run) {
    absl::Status status = Ask();
    if (status.ok()) cluster_.SetHeld(run.run_key, held);
    return status;
  });
}

agents::RunOutput FakeBackend::OpenLogs(const agents::RunHandle& run) {
  agents::RunOutput output;
  output.may_have_gpus = agents::MayHaveGpus(run);
  const uint32_t ranks =
      run.assignment == nullptr ? 1 : std::max(1u, run.assignment->spec().nodes());
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    for (const v1::LogStream stream : {v1::LOG_STREAM_STDOUT, v1::LOG_STREAM_STDERR})
      output.logs.push_back({rank, stream, Cluster::LogPath(run.run_key, rank, stream)});
  }
  return output;
}

std::vector<absl::Status> FakeBackend::Forget(const std::vector<agents::RunHandle>& runs) {
  return agents::OneByOne(runs, [this](const agents::RunHandle& run) {
    cluster_.Forget(run.run_key);
    missing_since_.erase(run.run_key);
    return absl::OkStatus();
  });
}

}  // namespace muster::fake
