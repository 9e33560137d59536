#include "tests/sim/cluster.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "fmt/format.h"

namespace muster::sim {
namespace {

// The time after which a launch that was put off is tried again.
constexpr absl::Duration kLongestDeferral = absl::Seconds(10);

// Reads the workload's word on what a command does; see client.cc.
int64_t Number(const v1::JobSpec& spec, const std::string& label) {
  const auto found = spec.labels().find(label);
  return found == spec.labels().end() ? 0 : std::atoll(found->second.c_str());
}

}  // namespace

SimCluster::SimCluster(World* world, Auditor* auditor, std::string name, Temper temper)
    : world_(*world),
      auditor_(*auditor),
      name_(std::move(name)),
      temper_(temper),
      leases_(world),
      cluster_(&world->loop, this, temper.cluster),
      backend_(std::make_unique<fake::FakeBackend>(&cluster_)),
      inventory_(*backend_->Inventory()) {
  inventory_.set_identity("identity-of-" + name_);
  // One node with as many cores as runs may run, so that the broker knows when it is full.
  v1::NodeGroup* node = inventory_.mutable_pools(0)->mutable_node_groups(0);
  node->set_count(1);
  node->set_usable_count(1);
  node->set_cpus(static_cast<uint32_t>(temper.cluster.slots));
}

// ---- calls

void SimCluster::Restart(const std::vector<agents::RunHandle>& runs) {
  backend_ = std::make_unique<fake::FakeBackend>(&cluster_);
  backend_->Adopt(runs).IgnoreError();
}

bool SimCluster::Refuse(const agent::v1::Assignment& assignment, agents::LaunchOutcome* outcome) {
  const bool has_no_image = assignment.run() <= Number(assignment.spec(), "no_image_until");
  if (!has_no_image && Number(assignment.spec(), "refused") == 0) return false;
  outcome->kind = agents::LaunchOutcome::Kind::kRefused;
  outcome->failure.set_failure_class(has_no_image ? v1::FAILURE_CLASS_IMAGE
                                                  : v1::FAILURE_CLASS_CONFIG);
  outcome->failure.set_message(has_no_image ? "the registry does not answer" : "invalid partition");
  outcome->failure.set_retriable(has_no_image);
  auditor_.Ended(assignment.run_key(),
                 {TrueEnd::Kind::kRefused, 0,
                  has_no_image ? TrueEnd::Fault::kCluster : TrueEnd::Fault::kProgram});
  return true;
}

void SimCluster::Launch(const agent::v1::Assignment& assignment,
                        std::function<void(agents::LaunchOutcome)> answer) {
  using Kind = agents::LaunchOutcome::Kind;
  if (agents::KeepsLease(assignment)) {
    if (!leases_.AreLive()) {
      agents::LaunchOutcome outcome;
      outcome.kind = Kind::kDeferred;
      outcome.retry_after = absl::Seconds(1);
      world_.Count("launch deferred for a lease");
      world_.loop.After(CallTime(), [answer, outcome] { answer(outcome); });
      return;
    }
    leases_.NoteLaunch(assignment.run_key());
  }
  world_.loop.After(CallTime(), [this, assignment, answer] {
    agents::LaunchOutcome outcome;
    if (Refuse(assignment, &outcome)) {
      // The cluster never has it.
    } else if (world_.Strikes(0.05)) {
      outcome.kind = Kind::kDeferred;
      const bool waits = world_.random.Chance(0.5);
      outcome.retry_after = waits ? kLongestDeferral : absl::ZeroDuration();
      world_.Count("launch deferred");
    } else if (cluster_.is_away() || world_.Strikes(temper_.is_slurm ? 0.15 : 0.03)) {
      // The scheduler may have heard it all the same, and act on it when it gets round to it.
      outcome.kind = Kind::kUnclear;
      world_.Count("launch unclear");
      if (world_.random.Chance(0.6)) {
        world_.Count("launch unclear, yet accepted later");
        world_.loop.After(world_.random.Between(absl::ZeroDuration(), kLongestFlight),
                          [this, assignment] {
                            if (!cluster_.Submit(assignment))
                              world_.Count("late launch of a fenced run");
                          });
      }
    } else {
      outcome =
          backend_->Launch({std::make_shared<const agent::v1::Assignment>(assignment)}).front();
    }
    world_.history.Note(world_.loop, "{}: launch of {} is answered with {}", name_,
                        assignment.run_key(), static_cast<int>(outcome.kind));
    world_.loop.After(CallTime(), [answer, outcome] { answer(outcome); });
  });
}

void SimCluster::Lookup(const agents::RunHandle& run,
                        std::function<void(agents::LookupOutcome)> answer) {
  using Kind = agents::LookupOutcome::Kind;
  world_.loop.After(CallTime(), [this, run, answer] {
    agents::LookupOutcome outcome;
    if (!IsUnanswered()) outcome = backend_->Lookup(run);
    const fake::Cluster::Job* job = cluster_.Find(run.run_key);
    if (outcome.kind == Kind::kCouldNotAsk) world_.Count("look-up not answered");
    if (outcome.kind == Kind::kAbsent) world_.Count("look-up finds nothing");
    if (outcome.kind == Kind::kFound) {
      world_.Count("look-up finds the run");
      if (!job->in_queue) world_.Count("look-up finds a run that the scheduler forgot");
    }
    if (world_.Has(Mutation::kSkipLookups)) outcome.kind = Kind::kAbsent;
    world_.history.Note(world_.loop, "{}: look-up of {} is answered with {}", name_, run.run_key,
                        static_cast<int>(outcome.kind));
    world_.loop.After(CallTime(), [answer, outcome] { answer(outcome); });
  });
}

void SimCluster::Fence(const agents::RunHandle& run,
                       std::function<void(agents::FenceOutcome)> answer) {
  using Kind = agents::FenceOutcome::Kind;
  world_.loop.After(CallTime(), [this, run, answer] {
    agents::FenceOutcome outcome;
    if (world_.Has(Mutation::kFenceLies)) {
      outcome.kind = Kind::kNeverBegins;
    } else if (world_.Strikes(0.05)) {
      outcome.kind = Kind::kImpossible;
    } else if (!IsUnanswered()) {
      outcome = backend_->Fence(run);
    }
    world_.Count(outcome.kind == Kind::kNeverBegins ? "fence proved" : "fence not proved yet");
    world_.history.Note(world_.loop, "{}: fence of {} is answered with {}", name_, run.run_key,
                        static_cast<int>(outcome.kind));
    world_.loop.After(CallTime(), [answer, outcome] { answer(outcome); });
  });
}

void SimCluster::Observe(std::vector<agents::RunHandle> runs,
                         std::function<void(agents::ObserveOutcome)> answer) {
  world_.loop.After(CallTime(), [this, runs = std::move(runs), answer] {
    agents::ObserveOutcome outcome = backend_->Observe(runs);
    for (agents::Observation& seen : outcome.observations) Distort(&seen);
    world_.loop.After(CallTime(), [answer, outcome] { answer(outcome); });
  });
}

void SimCluster::Distort(agents::Observation* seen) {
  if (seen->state == v1::RUN_STATE_LOST) world_.Count("run reported as lost");
  if (seen->state == v1::RUN_STATE_CANCELED && cut_off_.contains(seen->run_key)) {
    world_.Count("cancel that looks like a failure");
    seen->state = v1::RUN_STATE_FAILED;
    seen->failure.emplace().set_failure_class(v1::FAILURE_CLASS_INFRA);
    seen->failure->set_message("the run was cut off before its end could be recorded");
    seen->failure->set_retriable(true);
    return;
  }
  if (world_.Has(Mutation::kWrongExitCode) && seen->exit.has_value() && seen->exit->code() != 0)
    seen->exit->set_code(seen->exit->code() + 1);
  if (world_.Has(Mutation::kRetryPlainFailures) && seen->failure.has_value())
    seen->failure->set_retriable(true);
}

void SimCluster::Cancel(const agents::RunHandle& run, std::function<void(absl::Status)> answer) {
  world_.loop.After(CallTime(), [this, run, answer] {
    absl::Status status = absl::UnavailableError("the scheduler is away");
    if (!IsUnanswered()) {
      Note(run.run_key, "is canceled");
      const fake::Cluster::Job* job = cluster_.Find(run.run_key);
      // Killed before it could write anything down, or by a TERM that its program answers with an
      // exit code of its own. A run that still waits has neither.
      if (world_.random.Chance(0.3) && job != nullptr && job->has_started)
        cut_off_.insert(run.run_key);
      status = backend_->End({run}).front();
    }
    world_.loop.After(CallTime(), [answer, status] { answer(status); });
  });
}

void SimCluster::SetHeld(const agents::RunHandle& run, bool held,
                         std::function<void(absl::Status)> answer) {
  world_.loop.After(CallTime(), [this, run, held, answer] {
    absl::Status status = absl::UnavailableError("the scheduler is away");
    if (!IsUnanswered()) {
      Note(run.run_key, held ? "is held" : "is released");
      const fake::Cluster::Job* job = cluster_.Find(run.run_key);
      if (held && job != nullptr && job->phase == Phase::kQueued)
        world_.Count("run held on its cluster");
      status = backend_->Hold({run}, held).front();
    }
    world_.loop.After(CallTime(), [answer, status] { answer(status); });
  });
}

void SimCluster::Forget(const agents::RunHandle& run) {
  const fake::Cluster::Job* job = cluster_.Find(run.run_key);
  if (job == nullptr) return;
  // The record of a success is there before the scheduler has cleaned up.
  const bool is_over = job->phase == Phase::kEnded || job->phase == Phase::kFinishing;
  auditor_.Forgotten(run.run_key, !is_over);
  cut_off_.erase(run.run_key);
  backend_->Forget({run});
}

// ---- what truly happens

fake::Program SimCluster::ProgramOf(const agent::v1::Assignment& run, uint32_t /*rank*/) {
  const auto strikes = [&](const char* label) { return run.run() <= Number(run.spec(), label); };
  const int64_t duration_ms = Number(run.spec(), "duration_ms");
  fake::Program program;
  program.duration = duration_ms < 0 ? absl::InfiniteDuration() : absl::Milliseconds(duration_ms);
  program.end.code = static_cast<int>(Number(run.spec(), "exit"));
  if (const auto signal = static_cast<int>(Number(run.spec(), "signal")); signal != 0)
    program.end = {TrueEnd::Kind::kSignal, signal};
  if (Number(run.spec(), "vanishes") != 0) program.end = {TrueEnd::Kind::kVanished};
  if (strikes("flaky_until")) program.end = {TrueEnd::Kind::kExit, 1, TrueEnd::Fault::kCluster};
  if (strikes("preempted_until"))
    program.end = {TrueEnd::Kind::kExit, 1, TrueEnd::Fault::kPreemption};
  const bool is_struck = program.end.fault != TrueEnd::Fault::kProgram;
  if (is_struck && program.duration == absl::InfiniteDuration())
    program.duration = absl::Seconds(5);
  return program;
}

absl::Duration SimCluster::StartTime() {
  return world_.random.Skewed(absl::Milliseconds(10), absl::Seconds(5));
}
absl::Duration SimCluster::EndTime() {
  return world_.random.Skewed(absl::Milliseconds(1), kLongestStop);
}
absl::Duration SimCluster::FinishTime() {
  return world_.random.Skewed(absl::ZeroDuration(), absl::Seconds(3));
}

void SimCluster::OnSubmitted(const std::string& run_key) {
  auditor_.Submitted(run_key);
  Note(run_key, "is accepted");
}

void SimCluster::OnStarted(const std::string& run_key, int restart) {
  auditor_.Started(run_key, restart);
  Note(run_key, "starts its command");
  LookAtLease(run_key, restart);
}

void SimCluster::LookAtLease(const std::string& run_key, int restart) {
  world_.loop.After(absl::Milliseconds(agents::kLeaseLookMs), [this, run_key, restart] {
    const fake::Cluster::Job* job = cluster_.Find(run_key);
    if (job == nullptr || job->restart != restart) return;
    if (job->phase != Phase::kRunning && job->phase != Phase::kSuspended) return;
    if (!leases_.IsOver(run_key)) return LookAtLease(run_key, restart);
    Note(run_key, "is stopped: its lease is over");
    cluster_.EndLease(run_key);
  });
}

void SimCluster::OnEnded(const std::string& run_key, const TrueEnd& end) {
  auditor_.Ended(run_key, end);
  world_.history.Note(world_.loop, "{}: {} has ended in way {} with {}", name_, run_key,
                      static_cast<int>(end.kind), end.code);
}

void SimCluster::Misfortune() {
  std::vector<const fake::Cluster::Job*> live;
  for (const auto& [key, job] : cluster_.jobs()) {
    if (job.phase != Phase::kEnded && job.phase != Phase::kFinishing) live.push_back(&job);
  }
  const uint64_t kind = world_.random.Below(4);
  if (kind == 0) {
    const absl::Duration away = world_.random.Between(absl::Seconds(1), absl::Seconds(60));
    world_.Count("scheduler unreachable");
    world_.history.Note(world_.loop, "{}: unreachable for {}", name_, absl::FormatDuration(away));
    return cluster_.SetAwayUntil(world_.loop.now() + away);
  }
  if (live.empty()) return;
  const fake::Cluster::Job& job = *live[world_.random.Below(live.size())];
  if (kind == 1 && temper_.is_slurm && job.phase == Phase::kRunning) {
    world_.Count("requeue");
    Note(job.run_key, "is requeued");
    auditor_.Requeued(job.run_key);
    cluster_.Requeue(job.run_key);
  } else if (kind == 2 && temper_.is_slurm && job.phase == Phase::kRunning) {
    world_.Count("suspension");
    Note(job.run_key, "is suspended");
    cluster_.Suspend(job.run_key, world_.random.Between(absl::Seconds(1), absl::Seconds(30)));
  } else if (kind == 3 && world_.random.Chance(0.3)) {
    world_.Count("foreign cancel");
    Note(job.run_key, "is canceled by someone");
    cluster_.Cancel(job.run_key);
  }
}

size_t SimCluster::live() const {
  // Nobody knows any more of a run that was given up and that a lost journal had.
  const bool is_journal_lost = world_.counts.contains("journal lost");
  return static_cast<size_t>(
      std::count_if(cluster_.jobs().begin(), cluster_.jobs().end(), [&](const auto& entry) {
        const bool is_orphan = is_journal_lost && auditor_.WasGivenUp(entry.first);
        return entry.second.phase != Phase::kEnded && !is_orphan;
      }));
}

}  // namespace muster::sim
