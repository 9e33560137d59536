// Agents come, say what they hold, give signs of life and go; see
// proto/decisions/0001-agent-protocol.md.
#include <algorithm>
#include <set>
#include <utility>

#include "broker/core/impl.h"
#include "broker/core/inventory_times.h"
#include "broker/core/timestamps.h"
#include "contract/hello.h"
#include "contract/refusals.h"
#include "contract/run_key.h"
#include "contract/states.h"

namespace muster::core {
namespace {

// An old copy lacks fewer jobs; a number beyond that is no job's.
constexpr uint64_t kMostLostJobs = 10'000'000;
// The time at which a cluster was last heard is kept to this grain: after a restart the broker may
// give it this much too early. Heartbeats come every few seconds, and each time that is stored is a
// write.
constexpr absl::Duration kLastSeenGranularity = absl::Minutes(1);
// A broker that is killed forgets as much of what projects have used.
constexpr absl::Duration kKeepAccounts = absl::Minutes(1);

constexpr uint32_t kProtocolVersion = 1;

// Returns the parts of an inventory that decide where jobs fit or that are shown, without the time
// at which it was read.
std::string Essence(const v1::Inventory& inventory) {
  v1::Inventory copy = inventory;
  copy.clear_observed_at();
  return copy.SerializeAsString();
}

// Returns the rules of the message itself.
std::optional<contract::Refusal> CheckHello(const agent::v1::AgentHello& hello) {
  if (hello.protocol_version() != kProtocolVersion) {
    return contract::Refusal{
        contract::refused::OtherProtocol{hello.protocol_version(), kProtocolVersion}};
  }
  absl::Status status = contract::ValidateHello(hello);
  if (status.ok()) return std::nullopt;
  return contract::Refusal{std::move(status)};
}

// Returns the time after which the nodes have stopped the runs whose leases have ended. Runs that
// are there may have begun under another agent's, and the longer one counts for all.
absl::Duration FenceDelayOf(const agent::v1::AgentHello& hello, const Cluster& cluster) {
  const absl::Duration told = ToDuration(hello.fence_delay());
  if (told <= absl::ZeroDuration()) return absl::ZeroDuration();
  return cluster.active > 0 ? std::max(told, cluster.saved.fence_delay) : told;
}

// Sends a list in messages of at most kMaxPerMessage items.
template <typename T, typename F>
void InChunks(const std::vector<T>& all, F send) {
  for (size_t begin = 0; begin < all.size(); begin += kMaxPerMessage) {
    const size_t end = std::min(begin + kMaxPerMessage, all.size());
    send(std::vector<T>(all.begin() + begin, all.begin() + end));
  }
}

}  // namespace

Cluster* Core::Impl::CurrentCluster(SessionId session) {
  auto it = sessions_.find(session);
  if (it != sessions_.end()) return it->second;
  ++counted_.stale_messages;
  return nullptr;
}

void Core::Impl::On(AgentConnected& in, Step& step) {
  agent::v1::AgentHello& hello = in.hello;
  std::optional<contract::Refusal> refusal = CheckHello(hello);
  Cluster* cluster = refusal ? nullptr : FindCluster(hello.cluster());
  if (!refusal) refusal = CheckIdentity(hello, cluster);
  if (refusal) {
    LeaveOutNumbersOf(hello);
    step.out->effects.push_back(CloseAgent{in.session, std::move(refusal)});
    return;
  }
  if (cluster == nullptr) cluster = AddCluster(hello.cluster());
  // The same agent, back before its old connection was found dead.
  if (cluster->session) CloseSession(cluster, std::nullopt, step);
  Welcome(cluster, in.session, hello, step);
  Reconcile(cluster, hello, step);
}

// An old copy of the database gives out numbers of jobs that others had before, so that a run of an
// earlier job would be taken for one of a new job.
std::optional<contract::Refusal> Core::Impl::CheckIsNewest(
    const agent::v1::AgentHello& hello) const {
  if (hello.broker_epoch() > broker_epoch_)
    return contract::Refusal{contract::refused::LaterEpoch{hello.broker_epoch(), broker_epoch_}};
  for (const agent::v1::HeldRun& held : hello.runs()) {
    const std::optional<uint64_t> job = OwnJob(held.run_key());
    if (!job.has_value() || !IsUnknownYet(*job)) continue;
    return contract::Refusal{contract::refused::LaterRun{held.run_key()}};
  }
  return std::nullopt;
}

std::optional<uint64_t> Core::Impl::OwnJob(const std::string& run_key) const {
  const absl::StatusOr<contract::RunKey> key = contract::RunKey::Parse(run_key);
  if (!key.ok() || key->instance != instance_) return std::nullopt;
  return key->job;
}

bool Core::Impl::IsUnknownYet(uint64_t job) const {
  return job >= next_job_id_ || (job >= lost_from_ && job < lost_until_);
}

// New jobs must not get the numbers, and so the run keys, of jobs that an old copy has lost. The
// agent stays refused until the next start.
void Core::Impl::LeaveOutNumbersOf(const agent::v1::AgentHello& hello) {
  for (const agent::v1::HeldRun& held : hello.runs()) {
    const std::optional<uint64_t> job = OwnJob(held.run_key());
    if (!job.has_value() || *job < next_job_id_ || *job - next_job_id_ >= kMostLostJobs) continue;
    if (lost_until_ == 0) lost_from_ = next_job_id_;
    next_job_id_ = lost_until_ = *job + 1;
  }
}

std::optional<contract::Refusal> Core::Impl::CheckIdentity(const agent::v1::AgentHello& hello,
                                                           const Cluster* cluster) const {
  using contract::Refusal;
  if (auto refusal = CheckLoop(hello.cluster(), hello.inventory())) return refusal;
  if (!hello.instance().empty() && hello.instance() != instance_)
    return Refusal{contract::refused::OtherInstance{hello.instance(), instance_}};
  if (auto refusal = CheckIsNewest(hello)) return refusal;
  if (cluster == nullptr) {
    const size_t known = clusters_by_name_.size();
    if (known < kMaxClusters && known + leaving_.size() < kMaxClustersWithLeaving)
      return std::nullopt;
    return Refusal{contract::refused::TooManyClusters{.known = known,
                                                      .leaving = leaving_.size(),
                                                      .max = kMaxClusters,
                                                      .max_with_leaving = kMaxClustersWithLeaving}};
  }
  const std::string& identity = cluster->saved.inventory.identity();
  if (!identity.empty() &&
      (identity != hello.inventory().identity() || cluster->saved.kind != hello.kind())) {
    return Refusal{
        contract::refused::OtherCluster{.cluster = hello.cluster(),
                                        .owner = {cluster->saved.kind, identity},
                                        .agent = {hello.kind(), hello.inventory().identity()}}};
  }
  if (cluster->session && cluster->saved.journal_id != hello.journal_id())
    return Refusal{contract::refused::NameConnected{hello.cluster()}};
  return std::nullopt;
}

std::optional<contract::Refusal> Core::Impl::CheckLoop(const std::string& cluster,
                                                       const v1::Inventory& inventory) const {
  const auto& behind = inventory.broker_instances();
  if (std::find(behind.begin(), behind.end(), instance_) == behind.end()) return std::nullopt;
  return contract::Refusal{contract::refused::BrokerLoop{
      .cluster = cluster, .instance = instance_, .behind = {behind.begin(), behind.end()}}};
}

void Core::Impl::Welcome(Cluster* cluster, SessionId session, agent::v1::AgentHello& hello,
                         Step& step) {
  PutCluster& saved = cluster->saved;
  KeepTimes(saved.inventory, step.now, hello.mutable_inventory());
  const bool same_inventory =
      saved.kind == hello.kind() && Essence(saved.inventory) == Essence(hello.inventory());
  const absl::Duration fence_delay = FenceDelayOf(hello, *cluster);
  const bool same_fence =
      (saved.fence_delay > absl::ZeroDuration()) == (fence_delay > absl::ZeroDuration());
  saved.fence_delay = fence_delay;
  if (saved.journal_id != hello.journal_id()) saved.acked_event_sequence = 0;
  saved.journal_id = hello.journal_id();
  saved.kind = hello.kind();
  saved.inventory = std::move(*hello.mutable_inventory());
  saved.agent_version = hello.agent_version();
  saved.max_active_runs = hello.max_active_runs();
  saved.last_seen = step.now;
  ++saved.agent_epoch;
  NoteProcess(cluster, hello.process(), step.now);
  cluster->session = session;
  cluster->last_heard = step.now;
  ExtendLease(cluster, step.now);
  cluster->scheduler_observed_at.reset();
  cluster->scheduler_error.clear();
  cluster->scheduler_calls.clear();
  sessions_.emplace(session, cluster);
  ShowSaved(cluster);
  PutNow(*cluster, step);
  is_capacity_stale_ = true;
  NotePlaces(cluster);
  Open(cluster);
  // Room that it kept is kept again from the next round on.
  looked_for_long_waits_ = absl::InfinitePast();
  if (!same_inventory || !same_fence) refits_.ClusterChanged(cluster);

  SendToAgent send;
  send.session = session;
  agent::v1::BrokerWelcome* welcome = send.message.mutable_welcome();
  welcome->set_instance(instance_);
  welcome->set_broker_epoch(broker_epoch_);
  welcome->set_agent_epoch(saved.agent_epoch);
  const int64_t interval_ms = absl::ToInt64Milliseconds(options_.heartbeat_interval);
  welcome->mutable_heartbeat_interval()->set_seconds(interval_ms / 1000);
  welcome->mutable_heartbeat_interval()->set_nanos(interval_ms % 1000 * 1'000'000);
  welcome->set_acked_event_sequence(saved.acked_event_sequence);
  step.out->effects.push_back(std::move(send));
}

void Core::Impl::NoteProcess(Cluster* cluster, uint64_t process, absl::Time now) {
  if (process == cluster->process) return;
  if (process == cluster->former_process) cluster->cloned_at = now;
  cluster->former_process = std::exchange(cluster->process, process);
}

void Core::Impl::Reconcile(Cluster* cluster, const agent::v1::AgentHello& hello, Step& step) {
  std::set<RunId> held;
  std::vector<std::string> releases;
  for (const agent::v1::HeldRun& run : hello.runs()) {
    auto key = contract::RunKey::Parse(run.run_key());
    const bool ours =
        key.ok() && key->instance == instance_ && cluster->runs.contains({key->job, key->run});
    if (ours) {
      held.insert({key->job, key->run});
    } else {
      releases.push_back(run.run_key());
    }
  }
  std::vector<std::string> cancellations, holds, freed;
  for (auto it = cluster->runs.begin(); it != cluster->runs.end();) {
    const auto& [id, run] = *it;
    const bool ended = contract::IsTerminal(run->state());
    const bool is_held = held.contains(id);
    if (ended && !is_held) {
      // Its journal is gone, so nobody will deliver the rest of the logs.
      step.out->changes.push_back(PutRun{id.job, *run, /*is_last=*/true});
      it = cluster->runs.erase(it);
      continue;
    }
    if (!is_held) {
      cluster->to_resend.push_back(id);
    } else if (!ended) {
      const Job& job = jobs_.at(id.job);
      if (job.cancel_requested() || job.preempted()) cancellations.push_back(run->run_key());
      if (job.held() || job.withdrawn()) holds.push_back(run->run_key());
      if (job.withdrawn() && IsKnownToBeHeld(*run)) cancellations.push_back(run->run_key());
      if (job.released()) freed.push_back(run->run_key());
    }
    ++it;
  }
  const SessionId session = *cluster->session;
  InChunks(releases, [&](std::vector<std::string> keys) {
    SendToAgent send;
    send.session = session;
    for (std::string& key : keys) send.message.mutable_releases()->add_run_keys(std::move(key));
    step.out->effects.push_back(std::move(send));
  });
  SendCancellations(session, cancellations, step);
  SendHolds(session, holds, /*held=*/true, step);
  SendHolds(session, freed, /*held=*/false, step);
}

int Core::Impl::ResendRuns(int limit, Step& step) {
  int sent = 0;
  for (const auto& [name, cluster] : clusters_by_name_) {
    if (!cluster->session || cluster->to_resend.empty()) continue;
    SendAssignments resend;
    resend.session = *cluster->session;
    std::vector<std::string> freed;
    for (; sent < limit && !cluster->to_resend.empty(); cluster->to_resend.pop_front()) {
      const RunId id = cluster->to_resend.front();
      const auto run = cluster->runs.find(id);
      if (run == cluster->runs.end() || contract::IsTerminal(run->second->state())) continue;
      agent::v1::Assignment& assignment = resend.assignments.emplace_back();
      assignment.set_run_key(run->second->run_key());
      assignment.set_job_id(id.job);
      assignment.set_run(id.number);
      assignment.set_may_have_been_launched(true);
      const Job& job = jobs_.at(id.job);
      assignment.set_cancel_requested(job.cancel_requested() || job.preempted());
      assignment.set_held(job.held() || job.withdrawn());
      // The cluster may still hold a run that an agent without its journal finds there.
      if (job.released()) freed.push_back(assignment.run_key());
      ++sent;
    }
    if (!resend.assignments.empty()) step.out->effects.push_back(std::move(resend));
    SendHolds(*cluster->session, freed, /*held=*/false, step);
  }
  return sent;
}

void Core::Impl::On(AgentBeat& in, Step& step) {
  Cluster* cluster = CurrentCluster(in.session);
  if (cluster == nullptr) return;
  cluster->last_heard = step.now;
  Show(cluster);
  agent::v1::AgentHeartbeat& beat = in.heartbeat;
  if (beat.has_scheduler_observed_at()) {
    cluster->scheduler_observed_at = ToTime(beat.scheduler_observed_at());
  }
  if (step.now - cluster->saved.last_seen >= kLastSeenGranularity) {
    cluster->saved.last_seen = step.now;
    PutNow(*cluster, step);
  }
  cluster->scheduler_error = beat.scheduler_error();
  for (const auto& [command, calls] : beat.scheduler_calls()) {
    cluster->scheduler_calls[command] = calls;
  }
  if (beat.has_inventory()) {
    const std::string& identity = beat.inventory().identity();
    if (identity != cluster->saved.inventory.identity()) {
      contract::refused::ClusterExchanged exchanged{.cluster = cluster->name(),
                                                    .identity = cluster->saved.inventory.identity(),
                                                    .now = identity};
      CloseSession(cluster, contract::Refusal{std::move(exchanged)}, step);
      return;
    }
    if (auto loop = CheckLoop(cluster->name(), beat.inventory())) {
      CloseSession(cluster, std::move(loop), step);
      return;
    }
    TakeInventory(cluster, *beat.mutable_inventory(), step);
  }
  SendToAgent send;
  send.session = in.session;
  send.message.mutable_event_ack()->set_sequence(cluster->saved.acked_event_sequence);
  step.out->effects.push_back(std::move(send));
  RenewLeases(cluster, in.session, beat.number(), step);
}

void Core::Impl::TakeInventory(Cluster* cluster, v1::Inventory& inventory, Step& step) {
  KeepTimes(cluster->saved.inventory, step.now, &inventory);
  const bool same = Essence(inventory) == Essence(cluster->saved.inventory);
  cluster->saved.inventory = std::move(inventory);
  ShowSaved(cluster);
  if (same) return;
  cluster->saved.last_seen = step.now;
  PutNow(*cluster, step);
  is_capacity_stale_ = true;
  NotePlaces(cluster);
  Open(cluster);
  refits_.ClusterChanged(cluster);
}

void Core::Impl::On(AgentGone& in, Step& step) {
  auto it = sessions_.find(in.session);
  if (it != sessions_.end()) Disconnect(it->second, step);
}

void Core::Impl::Disconnect(Cluster* cluster, Step& step) {
  sessions_.erase(*cluster->session);
  cluster->session.reset();
  is_capacity_stale_ = true;
  Show(cluster);
  cluster->to_resend.clear();
  cluster->saved.last_seen = cluster->last_heard;
  PutNow(*cluster, step);
}

void Core::Impl::CloseSession(Cluster* cluster, std::optional<contract::Refusal> why, Step& step) {
  step.out->effects.push_back(CloseAgent{*cluster->session, std::move(why)});
  Disconnect(cluster, step);
}

void Core::Impl::On(Tick& in, Step& step) {
  const absl::Duration patience = options_.heartbeat_interval * options_.silent_heartbeats;
  for (const auto& [name, cluster] : clusters_by_name_) {
    if (in.clock_set_by != absl::ZeroDuration()) {
      cluster->last_heard += in.clock_set_by;
      cluster->lease_end += in.clock_set_by;
      if (cluster->full_since) *cluster->full_since += in.clock_set_by;
      Show(cluster);
    }
    if (cluster->cloned_at != absl::InfinitePast() &&
        step.now - cluster->cloned_at > kCloneMemory) {
      cluster->cloned_at = absl::InfinitePast();
      Show(cluster);
    }
    if (!cluster->session || step.now - cluster->last_heard < patience) continue;
    CloseSession(cluster, contract::Refusal{contract::refused::AgentSilent{patience}}, step);
  }
  if (in.clock_set_by != absl::ZeroDuration()) {
    ShiftWaits(in.clock_set_by, step);
    could_start_.clear();
    accounts_.ShiftClock(in.clock_set_by, step.now);
    accounts_kept_ += in.clock_set_by;
  }
  if (step.now - accounts_kept_ >= kKeepAccounts) KeepAccounts(step);
  EndWaits(step);
  EndRuledOut(step.now);
  FailOver(step);
  for (const auto& [name, cluster] : clusters_by_name_) Drain(cluster, step);
  MoveToRoom(step);
  constexpr size_t kMaxExpiredPerTick = 100'000;  // about 10 ms
  requests_.Expire(step.now - options_.request_memory, kMaxExpiredPerTick);
}

}  // namespace muster::core
