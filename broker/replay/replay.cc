#include "broker/replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "broker/core/core.h"
#include "broker/replay/chooser.h"
#include "broker/replay/cluster.h"
#include "broker/replay/idle_meter.h"
#include "contract/refusals.h"
#include "contract/text.h"
#include "contract/validate.h"

namespace muster::replay {
namespace {

constexpr std::string_view kNames[] = {"muster",       "random",        "least-loaded",
                                       "static-split", "first-by-name", "one-cluster"};

// An agent tells a change of its inventory no more often than this.
constexpr absl::Duration kBeatInterval = absl::Seconds(10);
// The broker looks for runs that could start elsewhere as often, while some job waits.
constexpr absl::Duration kTickInterval = absl::Seconds(15);

v1::JobSpec SpecOf(const TraceJob& job, const std::string& cluster) {
  v1::JobSpec spec;
  spec.set_name(job.name.substr(0, 128));
  spec.set_project(job.project);
  spec.set_nodes(job.nodes);
  spec.mutable_command()->set_script("true");
  v1::Resources* resources = spec.mutable_resources();
  resources->set_cpu_millis(job.cpu_millis);
  resources->set_memory_bytes(job.memory_bytes);
  if (job.gpu_millis > 0) {
    v1::GpuRequest* gpus = resources->add_gpus();
    gpus->set_type(job.gpu_type);
    gpus->set_count_millis(job.gpu_millis);
  }
  if (job.time_limit > absl::ZeroDuration())
    spec.mutable_time_limit()->set_seconds(absl::ToInt64Seconds(job.time_limit));
  if (!cluster.empty()) spec.mutable_placement()->add_clusters(cluster);
  return spec;
}

// Makes one replay: events in the order of their times, and after those of one time a round of
// placement.
class Replay {
 public:
  Replay(const Fleet& fleet, const Trace& trace, Policy policy, uint64_t seed,
         const PlacesToWait& places)
      : fleet_(fleet),
        trace_(trace),
        chooser_(policy, fleet, seed),
        takes_back_(policy == Policy::kMuster) {
    result_.outcomes.resize(trace.jobs.size());
    for (const FleetCluster& cluster : fleet.clusters) clusters_.emplace_back(cluster);
    sequences_.resize(clusters_.size());
    tells_.resize(clusters_.size());
    core::Options options;
    options.heartbeat_interval = absl::Hours(24 * 365);  // nobody falls silent here
    constexpr uint32_t kAll = 1'000'000'000;
    const bool waits_here = policy == Policy::kMuster;
    // The other policies are for comparison, and keep no room.
    if (!waits_here) options.keep_room_after = absl::InfiniteDuration();
    options.max_waiting_runs_per_pool = waits_here ? places.own_queue : kAll;
    options.sent_ahead_per_pool = waits_here ? places.others : kAll;
    core::Restored restored;
    restored.instance = "rply";
    core_ = std::make_unique<core::Core>(options, std::move(restored));
  }

  absl::StatusOr<Replayed> Run() {
    Connect();
    for (size_t i = 0; i < trace_.jobs.size(); ++i) At(trace_.jobs[i].arrival, Kind::kArrival, i);
    while (!events_.empty()) {
      now_ = events_.top().at;
      while (!events_.empty() && events_.top().at == now_) {
        const Event event = events_.top();
        events_.pop();
        Happen(event);
      }
      Settle();
      if (!status_.ok()) return status_;
      if (events_.empty()) break;
      // Later there is nothing left to fill the clusters with.
      const absl::Duration until = std::min(events_.top().at, trace_.jobs.back().arrival);
      idle_.Count(now_, until, waiting_, trace_, clusters_);
    }
    if (const uint64_t dropped = core_->counters().illegal_transitions; dropped > 0)
      return absl::InternalError(fmt::format("the core dropped {} reports of runs", dropped));
    result_.idle_gpu_seconds = idle_.gpu_seconds();
    return std::move(result_);
  }

 private:
  enum class Kind : uint8_t { kArrival, kEnd, kBeat, kTick };
  struct Event {
    absl::Duration at;
    uint64_t order;
    Kind kind;
    size_t index;  // of the job, or of the cluster
    bool operator>(const Event& other) const {
      return std::tie(at, order) > std::tie(other.at, other.order);
    }
  };

  absl::Time Clock() const { return absl::FromUnixSeconds(1'700'000'000) + now_; }

  void At(absl::Duration at, Kind kind, size_t index) {
    events_.push({at, ++last_order_, kind, index});
  }

  void Connect() {
    for (size_t i = 0; i < clusters_.size(); ++i) {
      agent::v1::AgentHello hello;
      hello.set_protocol_version(1);
      hello.set_cluster(clusters_[i].name());
      hello.set_kind(fleet_.clusters[i].kind);
      hello.set_agent_version("replay");
      hello.set_journal_id("journal of " + clusters_[i].name());
      *hello.mutable_inventory() = clusters_[i].Inventory();
      hello.set_max_active_runs(fleet_.clusters[i].max_active_runs);
      Tell(core::AgentConnected{i + 1, std::move(hello)});
    }
  }

  void Happen(const Event& event) {
    switch (event.kind) {
      case Kind::kArrival:
        return Arrive(event.index);
      case Kind::kEnd:
        return End(event.index);
      case Kind::kTick:
        ticks_ = false;
        return Tell(core::Tick{});
      case Kind::kBeat:
        tells_[event.index] = false;
        agent::v1::AgentHeartbeat beat;
        *beat.mutable_inventory() = clusters_[event.index].Inventory();
        return Tell(core::AgentBeat{event.index + 1, std::move(beat)});
    }
  }

  void Arrive(size_t index) {
    const TraceJob& job = trace_.jobs[index];
    auto spec = contract::NormalizeJobSpec(SpecOf(job, chooser_.Choose(job, clusters_)));
    if (!spec.ok()) {
      status_ = absl::InvalidArgumentError(
          fmt::format("job \"{}\" of the trace: {}", job.name, ToStd(spec.status().message())));
      return;
    }
    core::Submit submit;
    submit.ticket = index + 1;
    submit.user = job.user.empty() ? "nobody" : job.user;
    submit.items.emplace_back().spec = std::make_shared<const v1::JobSpec>(*std::move(spec));
    Tell(std::move(submit));
  }

  void End(size_t index) {
    const size_t cluster = homes_.at(index);
    clusters_[cluster].End(index);
    agent::v1::RunEvent event = NewsOf(index, v1::RUN_STATE_SUCCEEDED);
    event.set_logs_complete(true);
    event.mutable_exit();
    Report(cluster, std::move(event));
    keys_.erase(index);
    NoteChange(cluster);
  }

  // The next heartbeat of the cluster has its new inventory.
  void NoteChange(size_t cluster) {
    if (tells_[cluster]) return;
    tells_[cluster] = true;
    At(now_ + kBeatInterval, Kind::kBeat, cluster);
  }

  agent::v1::RunEvent NewsOf(size_t index, v1::RunState state) {
    agent::v1::RunEvent event;
    event.set_run_key(keys_.at(index));
    event.set_state(state);
    event.mutable_evidence()->set_source(v1::EVIDENCE_SOURCE_AGENT);
    event.mutable_evidence()->mutable_observed_at()->set_seconds(absl::ToUnixSeconds(Clock()));
    if (state == v1::RUN_STATE_RUNNING)
      event.mutable_start_time()->set_seconds(absl::ToUnixSeconds(Clock()));
    if (state == v1::RUN_STATE_SUCCEEDED)
      event.mutable_end_time()->set_seconds(absl::ToUnixSeconds(Clock()));
    return event;
  }

  void Report(size_t cluster, agent::v1::RunEvent event) {
    event.set_sequence(++sequences_[cluster]);
    agent::v1::RunEvents events;
    *events.add_events() = std::move(event);
    Tell(core::AgentReported{cluster + 1, std::move(events)});
  }

  // Rounds of placement, and starts on clusters, until neither brings anything new.
  void Settle() {
    for (bool more = true; more && status_.ok();) {
      core::Output out;
      more = core_->PlaceJobs(Clock(), &out);
      Take(out);
      for (size_t i = 0; i < clusters_.size(); ++i) {
        for (const size_t index : clusters_[i].StartWhatFits(now_)) {
          Start(i, index);
          more = true;
        }
      }
      TellWhoWaits();
      more |= TakeBackAsked();
    }
    if (takes_back_ && !waiting_.empty() && !ticks_) {
      ticks_ = true;
      At(now_ + kTickInterval, Kind::kTick, 0);
    }
    core_->TakeShownClusters(Clock());
  }

  // A scheduler says of a run that does not start at once that it waits for resources.
  void TellWhoWaits() {
    for (const size_t index : std::exchange(arrived_, {})) {
      if (result_.outcomes[index].start) continue;
      agent::v1::RunEvent event = NewsOf(index, v1::RUN_STATE_PENDING);
      event.mutable_state_reason()->set_code(v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES);
      Report(homes_.at(index), std::move(event));
    }
  }

  // A cluster that is told to hold a run that has not started says so, and ends it when it is told.
  bool TakeBackAsked() {
    bool any = false;
    for (const std::string& key : std::exchange(to_hold_, {})) {
      const size_t index = index_of_key_.at(key);
      if (!clusters_[homes_.at(index)].TakeBack(index)) continue;
      agent::v1::RunEvent event = NewsOf(index, v1::RUN_STATE_PENDING);
      event.mutable_state_reason()->set_code(v1::STATE_REASON_CODE_HELD);
      Report(homes_.at(index), std::move(event));
      any = true;
    }
    for (const std::string& key : std::exchange(to_end_, {})) {
      const size_t index = index_of_key_.at(key);
      agent::v1::RunEvent event = NewsOf(index, v1::RUN_STATE_CANCELED);
      event.set_logs_complete(true);
      Report(homes_.at(index), std::move(event));
      any = true;
    }
    return any;
  }

  void Start(size_t cluster, size_t index) {
    result_.outcomes[index].start = now_;
    waiting_.erase(index);
    Report(cluster, NewsOf(index, v1::RUN_STATE_RUNNING));
    At(now_ + trace_.jobs[index].run_time, Kind::kEnd, index);
    NoteChange(cluster);
  }

  void Tell(core::Input input) {
    core::Output out;
    core_->Handle(std::move(input), Clock(), &out);
    Take(out);
  }

  void Take(core::Output& out) {
    for (const core::Change& change : out.changes) {
      const auto* put = std::get_if<core::PutRun>(&change);
      if (put == nullptr || put->run.state() != v1::RUN_STATE_ASSIGNED) continue;
      if (!put->run.has_start_estimate()) continue;
      result_.outcomes[jobs_.at(put->job)].expected_start =
          absl::FromUnixSeconds(put->run.start_estimate().time().seconds()) -
          absl::FromUnixSeconds(1'700'000'000);
    }
    for (core::Effect& effect : out.effects) {
      if (auto* reply = std::get_if<core::SubmitReply>(&effect)) OnReply(*reply);
      if (auto* sent = std::get_if<core::SendAssignments>(&effect)) OnAssignments(*sent);
      if (const auto* told = std::get_if<core::SendToAgent>(&effect)) {
        const auto& holds = told->message.holds();
        if (holds.held())
          to_hold_.insert(to_hold_.end(), holds.run_keys().begin(), holds.run_keys().end());
        const auto& ends = told->message.cancellations().run_keys();
        to_end_.insert(to_end_.end(), ends.begin(), ends.end());
      }
      if (const auto* closed = std::get_if<core::CloseAgent>(&effect)) OnClosed(*closed);
    }
  }

  void OnReply(const core::SubmitReply& reply) {
    const auto* accepted = std::get_if<v1::SubmitJobsResponse>(&reply.result);
    const size_t index = reply.ticket - 1;
    if (accepted == nullptr) {
      const absl::Status why = contract::ToStatus(std::get<contract::Refusal>(reply.result));
      result_.outcomes[index].refusal = ToStd(why.message());
      return;
    }
    jobs_.emplace(accepted->responses(0).job_id(), index);
    waiting_.insert(index);
  }

  void OnAssignments(const core::SendAssignments& sent) {
    const size_t cluster = sent.session - 1;
    for (const agent::v1::Assignment& assignment : sent.assignments) {
      const size_t index = jobs_.at(assignment.job_id());
      homes_[index] = cluster;
      keys_[index] = assignment.run_key();
      index_of_key_[assignment.run_key()] = index;
      result_.outcomes[index].cluster = clusters_[cluster].name();
      clusters_[cluster].Submit(index, trace_.jobs[index], now_);
      arrived_.push_back(index);
      Report(cluster, NewsOf(index, v1::RUN_STATE_LAUNCHING));
      Report(cluster, NewsOf(index, v1::RUN_STATE_PENDING));
    }
  }

  void OnClosed(const core::CloseAgent& closed) {
    status_ = absl::InternalError(
        fmt::format("the core refuses the agent of {}: {}", clusters_[closed.session - 1].name(),
                    closed.why ? ToStd(contract::ToStatus(*closed.why).message()) : ""));
  }

  const Fleet& fleet_;
  const Trace& trace_;
  Chooser chooser_;
  std::unique_ptr<core::Core> core_;
  std::vector<ReplayCluster> clusters_;
  std::vector<uint64_t> sequences_;  // of the last event of each cluster
  std::vector<bool> tells_;          // whether a heartbeat with an inventory is due
  std::map<uint64_t, size_t> jobs_;  // index in the trace, by the broker's number
  std::map<size_t, size_t> homes_;   // cluster of each job that one has
  std::map<size_t, std::string> keys_;
  std::set<size_t> waiting_;
  std::map<std::string, size_t> index_of_key_;
  std::vector<std::string> to_hold_, to_end_;  // run keys
  const bool takes_back_;                      // the policy may move runs that wait
  bool ticks_ = false;                         // a tick is due
  std::vector<size_t> arrived_;  // at clusters, which have not told yet whether they wait
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t last_order_ = 0;
  absl::Duration now_;
  IdleMeter idle_;
  Replayed result_;
  absl::Status status_;
};

}  // namespace

std::string_view NameOf(Policy policy) { return kNames[static_cast<size_t>(policy)]; }

std::optional<Policy> PolicyNamed(std::string_view name) {
  for (const Policy policy : kPolicies) {
    if (NameOf(policy) == name) return policy;
  }
  return std::nullopt;
}

absl::StatusOr<Replayed> ReplayTrace(const Fleet& fleet, const Trace& trace, Policy policy,
                                     uint64_t seed, const PlacesToWait& places) {
  if (policy != Policy::kOneCluster) return Replay(fleet, trace, policy, seed, places).Run();
  const Fleet one = AsOneCluster(fleet);
  return Replay(one, trace, policy, seed, places).Run();
}

}  // namespace muster::replay
