#include "tests/unit/core/core_fixture.h"

#include <fmt/format.h>

#include <utility>

#include "broker/core/fingerprint.h"
#include "contract/errors.h"
#include "contract/refusals.h"
#include "contract/run_key.h"
#include "contract/sentences.h"

namespace muster::core {

v1::JobSpec Spec() {
  v1::JobSpec spec;
  spec.set_name("train");
  spec.set_project("default");
  spec.set_nodes(1);
  spec.mutable_resources()->set_cpu_millis(1000);
  spec.mutable_command()->set_script("true");
  return spec;
}

v1::JobSpec SpecOn(const std::string& cluster) {
  v1::JobSpec spec = Spec();
  spec.mutable_placement()->add_clusters(cluster);
  return spec;
}

v1::JobSpec SpecWithGpus(const std::string& type, int count, int nodes) {
  v1::JobSpec spec = Spec();
  v1::GpuRequest* gpus = spec.mutable_resources()->add_gpus();
  gpus->set_type(type);
  gpus->set_count_millis(1000 * count);
  spec.set_nodes(nodes);
  return spec;
}

v1::Pool PoolOf(const std::string& name, const NodeOptions& nodes, bool is_default) {
  v1::Pool pool;
  pool.set_name(name);
  pool.set_is_default(is_default);
  pool.set_available(true);
  v1::NodeGroup* group = pool.add_node_groups();
  group->set_count(nodes.count);
  group->set_usable_count(nodes.count);
  group->set_cpus(nodes.cpus);
  group->set_memory_bytes(nodes.memory_bytes);
  for (const auto& [type, count] : nodes.gpus) (*group->mutable_gpus())[type] = count;
  return pool;
}

agent::v1::AgentHello Hello(const std::string& cluster) {
  agent::v1::AgentHello hello;
  hello.set_protocol_version(1);
  hello.set_cluster(cluster);
  hello.set_kind(v1::CLUSTER_KIND_MACHINES);
  hello.set_agent_version("1");
  hello.set_journal_id("journal of " + cluster);
  hello.mutable_inventory()->set_identity("identity of " + cluster);
  *hello.mutable_inventory()->add_pools() = PoolOf("default");
  hello.set_max_active_runs(1000);
  return hello;
}

agent::v1::RunEvent Event(uint64_t sequence, const std::string& run_key, v1::RunState state) {
  agent::v1::RunEvent event;
  event.set_sequence(sequence);
  event.set_run_key(run_key);
  event.set_state(state);
  event.mutable_evidence()->set_source(v1::EVIDENCE_SOURCE_PROCESS);
  event.mutable_evidence()->set_detail("seen");
  event.mutable_evidence()->mutable_observed_at()->set_seconds(1'750'000'001);
  return event;
}

agent::v1::RunEvent InfraFailure(uint64_t sequence, const std::string& run_key) {
  agent::v1::RunEvent event = Event(sequence, run_key, v1::RUN_STATE_FAILED);
  event.mutable_failure()->set_failure_class(v1::FAILURE_CLASS_INFRA);
  event.mutable_failure()->set_message("node n1 failed");
  event.mutable_failure()->set_retriable(true);
  return event;
}

agent::v1::RunEvent LogsComplete(uint64_t sequence, const std::string& run_key,
                                 v1::RunState state) {
  agent::v1::RunEvent event = Event(sequence, run_key, state);
  event.set_logs_complete(true);
  return event;
}

v1::StateReason Reason(const std::string& words) {
  return contract::MakeReason(v1::STATE_REASON_CODE_OTHER, {.detail = words});
}

absl::StatusOr<v1::SubmitJobsResponse> ResultOf(const SubmitReply& reply) {
  if (const auto* refusal = std::get_if<contract::Refusal>(&reply.result))
    return contract::ToStatus(*refusal);
  return std::get<v1::SubmitJobsResponse>(reply.result);
}

std::string ReasonOf(const absl::Status& status) {
  auto info = contract::GetErrorInfo(status);
  return info ? info->reason() : "";
}

CoreTest::CoreTest() { Restart(); }

void CoreTest::Restart(Options options) {
  options_ = options;
  Restart();
}

void CoreTest::LetAllWaitOnClusters() {
  options_.sent_ahead_per_pool = 1'000'000;
  Restart();
}

void CoreTest::Restart() {
  auto restored = store_.Restore(now_);
  ASSERT_TRUE(restored.ok()) << restored.status();
  restored->limits = std::make_shared<const contract::PlaceLimits>(limits_);
  restored->shares = std::make_shared<const contract::ProjectShares>(shares_);
  core_ = std::make_unique<Core>(options_, *std::move(restored));
  shown_.clear();
  Look();
  const absl::Status invariants = core_->CheckInvariants();
  ASSERT_TRUE(invariants.ok()) << invariants;
}

void CoreTest::Do(Input input) {
  last_ = Output();
  core_->Handle(std::move(input), now_, &last_);
  core_->PlaceJobs(now_, &last_);
  Look();
  const absl::Status committed = store_.Commit(last_.changes);
  EXPECT_TRUE(committed.ok()) << committed;
  const absl::Status invariants = core_->CheckInvariants();
  EXPECT_TRUE(invariants.ok()) << invariants;
}

template <typename T>
T CoreTest::TakeReply() {
  for (Effect& effect : last_.effects) {
    if (T* reply = std::get_if<T>(&effect); reply && reply->ticket == last_ticket_) {
      return std::move(*reply);
    }
  }
  ADD_FAILURE() << "no reply";
  T none;
  none.ticket = last_ticket_;
  return none;
}

CoreTest::Submitted CoreTest::Submit(std::vector<SubmitItem> items, bool validate_only) {
  Do(core::Submit{++last_ticket_, std::move(items), user_, validate_only});
  return {ResultOf(TakeReply<SubmitReply>())};
}

absl::StatusOr<uint64_t> CoreTest::SubmitOne(const v1::JobSpec& spec,
                                             const std::string& request_id) {
  const Submitted reply =
      Submit({{std::make_shared<v1::JobSpec>(spec), request_id, RequestFingerprintOf(spec)}});
  if (!reply.result.ok()) return reply.result.status();
  return reply.result->responses(0).job_id();
}

uint64_t CoreTest::MustSubmit(const v1::JobSpec& spec) {
  auto id = SubmitOne(spec);
  EXPECT_TRUE(id.ok()) << id.status();
  return id.value_or(0);
}

absl::Status CoreTest::Cancel(std::vector<uint64_t> jobs) {
  Do(core::Cancel{++last_ticket_, std::move(jobs), "enough", "bob"});
  return contract::ToStatus(TakeReply<StatusReply>().refusal);
}

absl::Status CoreTest::Hold(std::vector<uint64_t> jobs) {
  Do(core::Hold{++last_ticket_, std::move(jobs), "not yet", "bob", true});
  return contract::ToStatus(TakeReply<StatusReply>().refusal);
}

absl::Status CoreTest::Release(std::vector<uint64_t> jobs) {
  Do(core::Hold{++last_ticket_, std::move(jobs), "", "carol", false});
  return contract::ToStatus(TakeReply<StatusReply>().refusal);
}

void CoreTest::Limit(contract::PlaceLimits limits) {
  limits_ = std::move(limits);
  Do(SetPlaceLimits{++last_ticket_, std::make_shared<const contract::PlaceLimits>(limits_)});
  EXPECT_FALSE(TakeReply<StatusReply>().refusal.has_value());
}

void CoreTest::Share(contract::ProjectShares shares) {
  shares_ = std::move(shares);
  Do(SetShares{++last_ticket_, std::make_shared<const contract::ProjectShares>(shares_)});
  EXPECT_FALSE(TakeReply<StatusReply>().refusal.has_value());
}

void CoreTest::Look() {
  for (ShownCluster& each : core_->TakeShownClusters(now_)) {
    shown_.erase(each.name);
    if (each.view != nullptr) shown_.emplace(each.name, std::move(each.view));
  }
}

ClusterViews CoreTest::Views() const {
  ClusterViews views;
  for (const auto& [name, view] : shown_) views.push_back(view);
  return views;
}

v1::StateReason CoreTest::Explain(uint64_t job) {
  const v1::Job waits = Job(job);
  EXPECT_EQ(waits.state(), v1::JOB_STATE_QUEUED);
  return WhyQueued(RequirementsOf(waits.spec()), {waits.priority(), job}, Views(), limits_, now_,
                   &waits);
}

std::vector<v1::Cluster> CoreTest::Clusters() { return ListClusters({}).clusters; }

ClustersReply CoreTest::ListClusters(core::ListClusters which) { return List(which, Views()); }

SessionId CoreTest::Connect(const agent::v1::AgentHello& hello) {
  Do(AgentConnected{++last_session_, hello});
  return last_session_;
}

void CoreTest::Report(SessionId session, std::vector<agent::v1::RunEvent> events) {
  AgentReported report;
  report.session = session;
  for (agent::v1::RunEvent& event : events) *report.events.add_events() = std::move(event);
  Do(std::move(report));
}

void CoreTest::Beat(SessionId session, const agent::v1::AgentHeartbeat& heartbeat) {
  Do(AgentBeat{session, heartbeat});
}

void CoreTest::Gone(SessionId session) { Do(AgentGone{session}); }

void CoreTest::Tick() { Do(core::Tick{}); }

std::vector<agent::v1::Assignment> CoreTest::Assignments(SessionId session) const {
  std::vector<agent::v1::Assignment> out;
  for (const Effect& effect : last_.effects) {
    const auto* send = std::get_if<SendAssignments>(&effect);
    if (send == nullptr || send->session != session) continue;
    EXPECT_LE(send->assignments.size(), 1000u);
    out.insert(out.end(), send->assignments.begin(), send->assignments.end());
  }
  return out;
}

std::vector<std::string> CoreTest::Assigned(SessionId session) const {
  std::vector<std::string> keys;
  for (const agent::v1::Assignment& assignment : Assignments(session)) {
    keys.push_back(assignment.run_key());
  }
  return keys;
}

namespace {

template <typename F>
void ForEachSent(const Output& output, SessionId session, F visit) {
  for (const Effect& effect : output.effects) {
    const auto* send = std::get_if<SendToAgent>(&effect);
    if (send != nullptr && send->session == session) visit(send->message);
  }
}

}  // namespace

std::vector<std::string> CoreTest::Cancelled(SessionId session) const {
  std::vector<std::string> keys;
  ForEachSent(last_, session, [&](const agent::v1::ConnectResponse& message) {
    EXPECT_LE(message.cancellations().run_keys_size(), 1000);
    keys.insert(keys.end(), message.cancellations().run_keys().begin(),
                message.cancellations().run_keys().end());
  });
  return keys;
}

std::vector<std::string> CoreTest::Released(SessionId session) const {
  std::vector<std::string> keys;
  ForEachSent(last_, session, [&](const agent::v1::ConnectResponse& message) {
    EXPECT_LE(message.releases().run_keys_size(), 1000);
    keys.insert(keys.end(), message.releases().run_keys().begin(),
                message.releases().run_keys().end());
  });
  return keys;
}

std::vector<std::string> CoreTest::ToldToHold(SessionId session, bool held) const {
  std::vector<std::string> keys;
  ForEachSent(last_, session, [&](const agent::v1::ConnectResponse& message) {
    EXPECT_LE(message.holds().run_keys_size(), 1000);
    if (message.holds().held() != held) return;
    keys.insert(keys.end(), message.holds().run_keys().begin(), message.holds().run_keys().end());
  });
  return keys;
}

std::optional<uint64_t> CoreTest::Acked(SessionId session) const {
  std::optional<uint64_t> acked;
  ForEachSent(last_, session, [&](const agent::v1::ConnectResponse& message) {
    if (message.has_event_ack()) acked = message.event_ack().sequence();
  });
  return acked;
}

std::optional<agent::v1::BrokerWelcome> CoreTest::Welcomed(SessionId session) const {
  std::optional<agent::v1::BrokerWelcome> welcome;
  ForEachSent(last_, session, [&](const agent::v1::ConnectResponse& message) {
    if (message.has_welcome()) welcome = message.welcome();
  });
  return welcome;
}

std::optional<absl::Status> CoreTest::Closed(SessionId session) const {
  for (const Effect& effect : last_.effects) {
    const auto* close = std::get_if<CloseAgent>(&effect);
    if (close != nullptr && close->session == session) return contract::ToStatus(close->why);
  }
  return std::nullopt;
}

v1::Job CoreTest::Job(uint64_t id) const {
  auto job = store_.GetJob(store::Scope::All(), id);
  EXPECT_TRUE(job.ok()) << job.status();
  return job.ok() ? *std::move(job) : v1::Job();
}

std::vector<v1::Transition> CoreTest::History(uint64_t id) const {
  auto found = store_.ListTransitions(store::Scope::All(), {id}, 0, 1'000'000);
  EXPECT_TRUE(found.ok());
  std::vector<v1::Transition> out;
  for (store::JobTransition& item : *found) out.push_back(std::move(item.transition));
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i].job_sequence(), i + 1);
  return out;
}

std::string CoreTest::Key(uint64_t job, int run) const {
  return contract::RunKey{"k7m2", job, static_cast<uint32_t>(run)}.ToString();
}

}  // namespace muster::core
