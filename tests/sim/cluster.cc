#include "tests/sim/cluster.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "contract/slurm_reasons.h"
#include "fmt/format.h"

namespace muster::sim {
namespace {

// The absence of a job from the queue is believed after this time without a trace.
constexpr absl::Duration kAbsenceGrace = absl::Seconds(30);
// After such a time a launch that was put off is tried again.
constexpr absl::Duration kLongestDeferral = absl::Seconds(10);

google::protobuf::Timestamp Stamp(absl::Time time) {
  google::protobuf::Timestamp stamp;
  stamp.set_seconds(absl::ToUnixSeconds(time));
  return stamp;
}

// How the workload says what a command does; see client.cc.
int64_t Number(const v1::JobSpec& spec, const std::string& label) {
  const auto found = spec.labels().find(label);
  return found == spec.labels().end() ? 0 : std::atoll(found->second.c_str());
}

}  // namespace

v1::Inventory SimCluster::Inventory() const {
  v1::Inventory inventory;
  inventory.set_identity("identity-of-" + name_);
  inventory.set_scheduler_version("simulated 1");
  v1::Pool* pool = inventory.add_pools();
  pool->set_name("default");
  pool->set_is_default(true);
  pool->set_available(true);
  v1::NodeGroup* nodes = pool->add_node_groups();
  nodes->set_count(4);
  nodes->set_usable_count(4);
  nodes->set_cpus(64);
  nodes->set_memory_bytes(uint64_t{64} << 30);
  return inventory;
}

v1::Evidence SimCluster::EvidenceNow(v1::EvidenceSource source, std::string detail) const {
  v1::Evidence evidence;
  evidence.set_source(source);
  evidence.set_detail(std::move(detail));
  *evidence.mutable_observed_at() = Stamp(world_.loop.now());
  return evidence;
}

// ---- calls

void SimCluster::Launch(const agent::v1::Assignment& assignment,
                        std::function<void(agents::LaunchOutcome)> answer) {
  using Kind = agents::LaunchOutcome::Kind;
  world_.loop.After(CallTime(), [this, assignment, answer] {
    agents::LaunchOutcome outcome;
    outcome.evidence = EvidenceNow(v1::EVIDENCE_SOURCE_SBATCH, "what the launch said");
    const auto fails_until = [&](const char* label) {
      return assignment.run() <= Number(assignment.spec(), label);
    };
    if (fails_until("no_image_until")) {
      outcome.kind = Kind::kRefused;
      outcome.failure.set_failure_class(v1::FAILURE_CLASS_IMAGE);
      outcome.failure.set_message("the registry does not answer");
      outcome.failure.set_retriable(true);
      auditor_.Ended(assignment.run_key(), {TrueEnd::Kind::kRefused, 0, TrueEnd::Fault::kCluster});
    } else if (Number(assignment.spec(), "refused") != 0) {
      outcome.kind = Kind::kRefused;
      outcome.failure.set_failure_class(v1::FAILURE_CLASS_CONFIG);
      outcome.failure.set_message("invalid partition");
      auditor_.Ended(assignment.run_key(), {TrueEnd::Kind::kRefused, 0});
    } else if (world_.Strikes(0.05)) {
      outcome.kind = Kind::kDeferred;
      const bool waits = world_.random.Chance(0.5);
      outcome.retry_after = waits ? kLongestDeferral : absl::ZeroDuration();
      world_.Count("launch deferred");
    } else if (!is_reachable() || world_.Strikes(temper_.is_slurm ? 0.15 : 0.03)) {
      // The scheduler may have heard it all the same, and act on it when it gets round to it.
      outcome.kind = Kind::kUnclear;
      world_.Count("launch unclear");
      if (world_.random.Chance(0.6)) {
        world_.Count("launch unclear, yet accepted later");
        world_.loop.After(world_.random.Between(absl::ZeroDuration(), kLongestFlight),
                          [this, assignment] { Accept(assignment); });
      }
    } else {
      Accept(assignment);
      outcome.kind = Kind::kLaunched;
      outcome.external_id = fmt::format("{}", entries_[assignment.run_key()].id);
    }
    world_.history.Note(world_.loop, "{}: launch of {} is answered with {}", name_,
                        assignment.run_key(), static_cast<int>(outcome.kind));
    world_.loop.After(CallTime(), [answer, outcome] { answer(outcome); });
  });
}

void SimCluster::Lookup(const agents::RunHandle& run,
                        std::function<void(agents::LookupOutcome)> answer) {
  using Kind = agents::LookupOutcome::Kind;
  const std::string key = run.run_key;
  world_.loop.After(CallTime(), [this, key, answer] {
    agents::LookupOutcome outcome;
    outcome.evidence = EvidenceNow(v1::EVIDENCE_SOURCE_SQUEUE, "what the look-up said");
    const auto found = entries_.find(key);
    const bool is_known =
        found != entries_.end() &&
        (found->second.in_queue || found->second.has_started || temper_.keeps_history);
    if (!is_reachable() || world_.Strikes(0.1)) {
      outcome.kind = Kind::kCouldNotAsk;
      world_.Count("look-up not answered");
    } else if (is_known) {
      outcome.kind = Kind::kFound;
      world_.Count("look-up finds the run");
      if (!found->second.in_queue) world_.Count("look-up finds a run that the scheduler forgot");
      outcome.external_id = fmt::format("{}", found->second.id);
    } else {
      outcome.kind = Kind::kAbsent;
      world_.Count("look-up finds nothing");
    }
    if (world_.Has(Mutation::kSkipLookups)) outcome.kind = Kind::kAbsent;
    world_.history.Note(world_.loop, "{}: look-up of {} is answered with {}", name_, key,
                        static_cast<int>(outcome.kind));
    world_.loop.After(CallTime(), [answer, outcome] { answer(outcome); });
  });
}

void SimCluster::Observe(std::vector<agents::RunHandle> runs,
                         std::function<void(agents::ObserveOutcome)> answer) {
  world_.loop.After(CallTime(), [this, runs = std::move(runs), answer] {
    agents::ObserveOutcome outcome;
    if (!is_reachable()) outcome.scheduler = absl::UnavailableError("the scheduler is away");
    for (const agents::RunHandle& run : runs) {
      const auto entry = entries_.find(run.run_key);
      if (entry == entries_.end()) continue;
      if (auto seen = See(&entry->second)) outcome.observations.push_back(*std::move(seen));
    }
    world_.loop.After(CallTime(), [answer, outcome] { answer(outcome); });
  });
}

void SimCluster::Cancel(const agents::RunHandle& run, std::function<void(absl::Status)> answer) {
  const std::string key = run.run_key;
  world_.loop.After(CallTime(), [this, key, answer] {
    absl::Status status;
    if (!is_reachable() || world_.Strikes(0.1)) {
      status = absl::UnavailableError("the scheduler is away");
    } else if (const auto found = entries_.find(key); found != entries_.end()) {
      world_.history.Note(world_.loop, "{}: {} is canceled", name_, key);
      // Killed before it could write anything down, or by a TERM that its program answers with an
      // exit code of its own.
      found->second.end_looks_like_failure |= world_.random.Chance(0.3);
      Kill(&found->second);
    }
    world_.loop.After(CallTime(), [answer, status] { answer(status); });
  });
}

void SimCluster::SetHeld(const agents::RunHandle& run, bool held,
                         std::function<void(absl::Status)> answer) {
  const std::string key = run.run_key;
  world_.loop.After(CallTime(), [this, key, held, answer] {
    absl::Status status;
    if (!is_reachable() || world_.Strikes(0.1)) {
      status = absl::UnavailableError("the scheduler is away");
    } else if (const auto found = entries_.find(key); found != entries_.end()) {
      world_.history.Note(world_.loop, "{}: {} is {}", name_, key, held ? "held" : "released");
      if (held && found->second.phase == Phase::kQueued) world_.Count("run held on its cluster");
      found->second.is_held = held;
      StartWhatFits();
    }
    world_.loop.After(CallTime(), [answer, status] { answer(status); });
  });
}

void SimCluster::Forget(const std::string& run_key) {
  const auto found = entries_.find(run_key);
  if (found == entries_.end()) return;
  // The record of a success is there before the scheduler has cleaned up.
  const bool is_over =
      found->second.phase == Phase::kEnded || found->second.phase == Phase::kFinishing;
  auditor_.Forgotten(run_key, !is_over);
  entries_.erase(found);
  StartWhatFits();
}

// ---- what truly happens

void SimCluster::Accept(const agent::v1::Assignment& assignment) {
  const std::string& key = assignment.run_key();
  auditor_.Submitted(key);
  if (entries_.contains(key)) world_.Count("launched again after it left no trace");
  Entry entry;
  entry.id = next_id_++;
  entry.run_key = key;
  const int64_t duration_ms = Number(assignment.spec(), "duration_ms");
  entry.duration = duration_ms < 0 ? absl::InfiniteDuration() : absl::Milliseconds(duration_ms);
  entry.exit_code = static_cast<int>(Number(assignment.spec(), "exit"));
  entry.signal = static_cast<int>(Number(assignment.spec(), "signal"));
  entry.is_held = assignment.held();
  entry.vanishes = Number(assignment.spec(), "vanishes") != 0;
  entry.is_preempted = assignment.run() <= Number(assignment.spec(), "preempted_until");
  entry.is_clusters_fault = assignment.run() <= Number(assignment.spec(), "flaky_until");
  if (entry.is_preempted || entry.is_clusters_fault) {
    entry.exit_code = 1;
    entry.signal = 0;
    entry.vanishes = false;
    if (entry.duration == absl::InfiniteDuration()) entry.duration = absl::Seconds(5);
  }
  entries_[key] = std::move(entry);
  world_.history.Note(world_.loop, "{}: {} is accepted", name_, key);
  StartWhatFits();
}

void SimCluster::StartWhatFits() {
  const auto used = std::count_if(entries_.begin(), entries_.end(), [](const auto& entry) {
    const Phase phase = entry.second.phase;
    return phase != Phase::kQueued && phase != Phase::kEnded;
  });
  int64_t free = temper_.slots - used;
  std::vector<Entry*> waiting;
  for (auto& [key, entry] : entries_) {
    if (entry.phase == Phase::kQueued && !entry.is_held) waiting.push_back(&entry);
  }
  std::sort(waiting.begin(), waiting.end(), [](auto* a, auto* b) { return a->id < b->id; });
  for (Entry* entry : waiting) {
    if (free-- <= 0) return;
    Enter(entry, Phase::kStarting);
    Plan(entry, world_.random.Skewed(absl::Milliseconds(10), absl::Seconds(5)),
         [this](Entry* e) { Begin(e); });
  }
}

void SimCluster::Plan(Entry* entry, absl::Duration delay, std::function<void(Entry*)> action) {
  if (delay == absl::InfiniteDuration()) return;
  world_.loop.After(
      delay, [this, key = entry->run_key, id = entry->id, number = entry->phase_number, action] {
        const auto found = entries_.find(key);
        if (found == entries_.end() || found->second.id != id) return;
        if (found->second.phase_number == number) action(&found->second);
      });
}

void SimCluster::Enter(Entry* entry, Phase phase) {
  entry->phase = phase;
  ++entry->phase_number;
}

void SimCluster::Begin(Entry* entry) {
  entry->has_started = true;
  entry->start_time = world_.loop.now();
  auditor_.Started(entry->run_key, entry->restart);
  world_.history.Note(world_.loop, "{}: the command of {} starts", name_, entry->run_key);
  Run(entry);
}

void SimCluster::Run(Entry* entry) {
  Enter(entry, Phase::kRunning);
  Plan(entry, entry->duration, [this](Entry* e) {
    if (e->vanishes) return End(e, {TrueEnd::Kind::kVanished, 0});
    TrueEnd end = e->signal != 0 ? TrueEnd{TrueEnd::Kind::kSignal, e->signal}
                                 : TrueEnd{TrueEnd::Kind::kExit, e->exit_code};
    if (e->is_clusters_fault) end.fault = TrueEnd::Fault::kCluster;
    if (e->is_preempted) end.fault = TrueEnd::Fault::kPreemption;
    e->has_record = true;
    e->end = end;
    e->end_time = world_.loop.now();
    auditor_.Ended(e->run_key, end);
    Enter(e, Phase::kFinishing);
    Plan(e, world_.random.Skewed(absl::ZeroDuration(), absl::Seconds(3)),
         [this, end](Entry* finishing) { End(finishing, end); });
  });
}

void SimCluster::End(Entry* entry, TrueEnd end) {
  entry->end = end;
  if (!entry->has_record) {
    entry->end_time = world_.loop.now();
    auditor_.Ended(entry->run_key, end);
  }
  Enter(entry, Phase::kEnded);
  world_.history.Note(world_.loop, "{}: {} has ended in way {} with {}", name_, entry->run_key,
                      static_cast<int>(end.kind), end.code);
  if (end.kind == TrueEnd::Kind::kVanished) {
    entry->in_queue = false;
  } else {
    Plan(entry, temper_.memory, [this](Entry* e) {
      e->in_queue = false;
      if (!e->has_record && !temper_.keeps_history) auditor_.LeftNoTrace(e->run_key);
    });
  }
  StartWhatFits();
}

void SimCluster::Kill(Entry* entry) {
  if (entry->phase == Phase::kEnded || entry->phase == Phase::kFinishing) return;
  const bool runs = entry->phase == Phase::kRunning || entry->phase == Phase::kSuspended;
  const absl::Duration grace =
      runs ? world_.random.Skewed(absl::Milliseconds(1), absl::Seconds(3)) : absl::ZeroDuration();
  Plan(entry, grace, [this](Entry* e) { End(e, {TrueEnd::Kind::kCanceled, 0}); });
}

void SimCluster::Misfortune() {
  std::vector<Entry*> live;
  for (auto& [key, entry] : entries_) {
    if (entry.phase != Phase::kEnded && entry.phase != Phase::kFinishing) live.push_back(&entry);
  }
  const uint64_t kind = world_.random.Below(4);
  if (kind == 0) {
    const absl::Duration away = world_.random.Between(absl::Seconds(1), absl::Seconds(60));
    world_.Count("scheduler unreachable");
    world_.history.Note(world_.loop, "{}: unreachable for {}", name_, absl::FormatDuration(away));
    unreachable_until_ = world_.loop.now() + away;
    return;
  }
  if (live.empty()) return;
  Entry* entry = live[world_.random.Below(live.size())];
  if (kind == 1 && temper_.is_slurm && entry->phase == Phase::kRunning) {
    world_.Count("requeue");
    world_.history.Note(world_.loop, "{}: {} is requeued", name_, entry->run_key);
    ++entry->restart;
    Enter(entry, Phase::kQueued);
    StartWhatFits();
  } else if (kind == 2 && temper_.is_slurm && entry->phase == Phase::kRunning) {
    world_.Count("suspension");
    world_.history.Note(world_.loop, "{}: {} is suspended", name_, entry->run_key);
    Enter(entry, Phase::kSuspended);
    Plan(entry, world_.random.Between(absl::Seconds(1), absl::Seconds(30)),
         [this](Entry* e) { Run(e); });
  } else if (kind == 3 && world_.random.Chance(0.3)) {
    world_.Count("foreign cancel");
    world_.history.Note(world_.loop, "{}: someone cancels {}", name_, entry->run_key);
    Kill(entry);
  }
}

size_t SimCluster::live() const {
  return static_cast<size_t>(std::count_if(entries_.begin(), entries_.end(), [](const auto& entry) {
    return entry.second.phase != Phase::kEnded;
  }));
}

// ---- what can be seen

std::optional<agents::Observation> SimCluster::See(Entry* entry) {
  const absl::Time now = world_.loop.now();
  // The record of a success is proof by itself; any other end waits for the scheduler.
  const bool succeeded =
      entry->has_record && entry->end.kind == TrueEnd::Kind::kExit && entry->end.code == 0;
  if (succeeded) return DescribeEnd(*entry);
  if (!is_reachable()) return std::nullopt;
  if (entry->in_queue) {
    entry->gone_since = absl::InfiniteFuture();
    switch (entry->phase) {
      case Phase::kQueued:
        return Describe(*entry, v1::RUN_STATE_PENDING);
      case Phase::kStarting:
        return Describe(*entry, v1::RUN_STATE_STARTING);
      case Phase::kRunning:
        return Describe(*entry, v1::RUN_STATE_RUNNING);
      case Phase::kSuspended:
        return Describe(*entry, v1::RUN_STATE_SUSPENDED);
      case Phase::kFinishing:
        return Describe(*entry, v1::RUN_STATE_FINISHING);
      case Phase::kEnded:
        return DescribeEnd(*entry);
    }
  }
  if (entry->has_record || (temper_.keeps_history && entry->end.kind != TrueEnd::Kind::kVanished)) {
    return DescribeEnd(*entry);
  }
  entry->gone_since = std::min(entry->gone_since, now);
  if (now - entry->gone_since < kAbsenceGrace) return std::nullopt;
  world_.Count("run reported as lost");
  return Describe(*entry, v1::RUN_STATE_LOST);
}

agents::Observation SimCluster::Describe(const Entry& entry, v1::RunState state) const {
  agents::Observation seen;
  seen.run_key = entry.run_key;
  seen.state = state;
  seen.evidence = EvidenceNow(v1::EVIDENCE_SOURCE_SQUEUE, "as squeue has it");
  seen.external_id = fmt::format("{}", entry.id);
  if (state == v1::RUN_STATE_PENDING) seen.reason = contract::SlurmReason("Resources");
  if (entry.has_started) seen.nodes = {"node-1"};
  if (entry.has_started) seen.start_time = entry.start_time;
  return seen;
}

agents::Observation SimCluster::DescribeCutOff(const Entry& entry) const {
  world_.Count("cancel that looks like a failure");
  agents::Observation seen = Describe(entry, v1::RUN_STATE_FAILED);
  seen.end_time = entry.end_time;
  seen.failure.emplace().set_failure_class(v1::FAILURE_CLASS_INFRA);
  seen.failure->set_message("the run was cut off before its end could be recorded");
  seen.failure->set_retriable(true);
  return seen;
}

agents::Observation SimCluster::DescribeEnd(const Entry& entry) const {
  if (entry.end.kind == TrueEnd::Kind::kCanceled && entry.end_looks_like_failure)
    return DescribeCutOff(entry);
  const auto state = [&] {
    switch (entry.end.kind) {
      case TrueEnd::Kind::kCanceled:
        return v1::RUN_STATE_CANCELED;
      case TrueEnd::Kind::kExit:
        return entry.end.code == 0 ? v1::RUN_STATE_SUCCEEDED : v1::RUN_STATE_FAILED;
      default:
        return v1::RUN_STATE_FAILED;
    }
  }();
  agents::Observation seen = Describe(entry, state);
  seen.end_time = entry.end_time;
  v1::ExitStatus exit;
  if (entry.end.kind == TrueEnd::Kind::kExit) exit.set_code(entry.end.code);
  if (entry.end.kind == TrueEnd::Kind::kSignal) exit.set_signal(entry.end.code);
  if (world_.Has(Mutation::kWrongExitCode) && exit.code() != 0) exit.set_code(exit.code() + 1);
  if (entry.end.kind != TrueEnd::Kind::kCanceled) seen.exit = exit;
  if (state == v1::RUN_STATE_FAILED) {
    seen.failure.emplace();
    const TrueEnd::Fault fault = entry.end.fault;
    seen.failure->set_failure_class(fault == TrueEnd::Fault::kCluster ? v1::FAILURE_CLASS_INFRA
                                    : fault == TrueEnd::Fault::kPreemption
                                        ? v1::FAILURE_CLASS_PREEMPTED
                                        : v1::FAILURE_CLASS_PROGRAM);
    seen.failure->set_message("the command failed");
    seen.failure->set_retriable(fault == TrueEnd::Fault::kCluster ||
                                world_.Has(Mutation::kRetryPlainFailures));
  }
  return seen;
}

}  // namespace muster::sim
