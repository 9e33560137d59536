// An AgentCore with its journal in memory and a clock that only the test moves.
#ifndef MUSTER_TESTS_UNIT_AGENTS_CORE_HARNESS_H_
#define MUSTER_TESTS_UNIT_AGENTS_CORE_HARNESS_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agents/core/agent_core.h"
#include "agents/core/journal_content.h"

namespace muster::agents {

class CoreHarness {
 public:
  CoreHarness() {
    content_.meta.journal_id = "journal-1";
    options_.cluster = "here";
    options_.kind = v1::CLUSTER_KIND_MACHINES;
    Start();
  }

  Options& options() { return options_; }
  const JournalContent& journal() const { return content_; }
  JournalContent& mutable_journal() { return content_; }
  absl::Time now() const { return now_; }
  // Returns the time of day. Someone may set it.
  absl::Time wall() const { return now_ + wall_step_; }
  void SetWallClock(absl::Duration step) { wall_step_ += step; }

  // The agent dies and starts again with what its journal holds.
  void Start() {
    core_ = std::make_unique<AgentCore>(options_, content_);
    last_ = {};
  }

  const Output& Do(Input input) {
    last_ = {};
    core_->Handle(std::move(input), now_, wall(), &last_);
    ApplyToContent(last_.changes, &content_);
    EXPECT_TRUE(core_->CheckInvariants().ok()) << core_->CheckInvariants();
    return last_;
  }
  const Output& After(absl::Duration time) {
    now_ += time;
    return Do(Tick{});
  }

  AgentCore& core() { return *core_; }

  // Returns the effects of the last input.
  template <typename E>
  std::vector<E> Effects() const {
    std::vector<E> found;
    for (const Effect& effect : last_.effects) {
      if (const E* is = std::get_if<E>(&effect)) found.push_back(*is);
    }
    return found;
  }
  template <typename C>
  std::vector<C> Changes() const {
    std::vector<C> found;
    for (const JournalChange& change : last_.changes) {
      if (const C* is = std::get_if<C>(&change)) found.push_back(*is);
    }
    return found;
  }
  std::vector<agent::v1::RunEvent> NewEvents() const {
    std::vector<agent::v1::RunEvent> events;
    for (const PutEvent& put : Changes<PutEvent>()) events.push_back(put.event);
    return events;
  }
  std::vector<v1::RunState> NewStates() const {
    std::vector<v1::RunState> states;
    for (const agent::v1::RunEvent& event : NewEvents()) states.push_back(event.state());
    return states;
  }
  // Returns the numbers of the events that the last input sent.
  std::vector<uint64_t> Sent() const {
    std::vector<uint64_t> numbers;
    for (const SendToBroker& send : Effects<SendToBroker>()) {
      for (const agent::v1::RunEvent& event : send.message.events().events()) {
        numbers.push_back(event.sequence());
      }
    }
    return numbers;
  }

  // ---- the broker's part

  static agent::v1::ConnectResponse WelcomeMessage(uint64_t acked = 0,
                                                   std::string instance = "k7m2",
                                                   uint64_t epoch = 1) {
    agent::v1::ConnectResponse message;
    message.mutable_welcome()->set_instance(std::move(instance));
    message.mutable_welcome()->set_broker_epoch(epoch);
    message.mutable_welcome()->set_acked_event_sequence(acked);
    message.mutable_welcome()->mutable_heartbeat_interval()->set_seconds(5);
    return message;
  }
  void Connect(uint64_t acked = 0) {
    Do(LinkUp{});
    Do(BrokerSaid{WelcomeMessage(acked)});
  }
  static agent::v1::Assignment AssignmentOf(uint64_t job) {
    agent::v1::Assignment assignment;
    assignment.set_run_key(Key(job));
    assignment.set_job_id(job);
    assignment.set_run(1);
    assignment.mutable_spec()->set_name("job");
    return assignment;
  }
  static std::string Key(uint64_t job) { return "k7m2-" + std::to_string(job) + "-1"; }
  const Output& Assign(const std::vector<agent::v1::Assignment>& assignments) {
    agent::v1::ConnectResponse message;
    for (const agent::v1::Assignment& one : assignments) {
      *message.mutable_assignments()->add_assignments() = one;
    }
    return Do(BrokerSaid{message});
  }
  const Output& Assign(uint64_t job) { return Assign({AssignmentOf(job)}); }
  const Output& Cancel(uint64_t job) {
    agent::v1::ConnectResponse message;
    message.mutable_cancellations()->add_run_keys(Key(job));
    return Do(BrokerSaid{message});
  }
  const Output& Release(uint64_t job) {
    agent::v1::ConnectResponse message;
    message.mutable_releases()->add_run_keys(Key(job));
    return Do(BrokerSaid{message});
  }
  const Output& Ack(uint64_t sequence) {
    agent::v1::ConnectResponse message;
    message.mutable_event_ack()->set_sequence(sequence);
    return Do(BrokerSaid{message});
  }

  // ---- the cluster's part

  const Output& Launched(uint64_t job) {
    agents::Launched launched{Key(job), {}};
    launched.outcome.kind = LaunchOutcome::Kind::kLaunched;
    launched.outcome.external_id = "pid-" + std::to_string(job);
    return Do(std::move(launched));
  }
  const Output& LaunchEnds(uint64_t job, LaunchOutcome::Kind kind) {
    agents::Launched launched{Key(job), {}};
    launched.outcome.kind = kind;
    return Do(std::move(launched));
  }
  const Output& Defer(uint64_t job, absl::Duration retry_after, const std::string& why) {
    agents::Launched launched{Key(job), {}};
    launched.outcome.kind = LaunchOutcome::Kind::kDeferred;
    launched.outcome.retry_after = retry_after;
    launched.outcome.evidence.set_detail(why);
    return Do(std::move(launched));
  }
  const Output& LookupEnds(uint64_t job, LookupOutcome::Kind kind, const std::string& detail = "") {
    LookedUp looked_up{Key(job), {}};
    looked_up.outcome.kind = kind;
    looked_up.outcome.evidence.set_detail(detail);
    looked_up.outcome.external_id = "pid-found";
    return Do(std::move(looked_up));
  }
  const Output& FenceEnds(uint64_t job, FenceOutcome::Kind kind, const std::string& detail = "") {
    Fenced fenced{Key(job), {}};
    fenced.outcome.kind = kind;
    fenced.outcome.evidence.set_detail(detail);
    return Do(std::move(fenced));
  }
  const Output& Forgotten(uint64_t job) { return Do(agents::Forgotten{Key(job)}); }
  const Output& CancelAsked(uint64_t job, absl::Status status = {}) {
    return Do(agents::CancelAsked{Key(job), std::move(status)});
  }
  static Observation Saw(uint64_t job, v1::RunState state) {
    Observation seen;
    seen.run_key = Key(job);
    seen.state = state;
    seen.evidence.set_source(v1::EVIDENCE_SOURCE_PROCESS);
    return seen;
  }
  const Output& Observe(Observation seen) { return ObserveSince(now_, std::move(seen)); }
  // Reports a look that began earlier.
  const Output& ObserveSince(absl::Time began, Observation seen) {
    Observed observed;
    observed.began = began;
    observed.outcome.observations.push_back(std::move(seen));
    return Do(std::move(observed));
  }
  const Output& Observe(uint64_t job, v1::RunState state) { return Observe(Saw(job, state)); }
  const Output& ShipLogs(uint64_t job) { return Do(LogsShipped{Key(job)}); }

  // Makes the cluster have a run.
  void Have(uint64_t job) {
    Assign(job);
    Launched(job);
  }

  v1::RunState State(uint64_t job) const {
    for (const JournalRun& run : content_.runs) {
      if (run.assignment->run_key() == Key(job)) return run.state;
    }
    return v1::RUN_STATE_UNSPECIFIED;
  }
  bool IsInJournal(uint64_t job) const { return State(job) != v1::RUN_STATE_UNSPECIFIED; }
  // Goes by the agent itself: its journal keeps a run until the backend has forgotten it.
  bool Holds(uint64_t job) const {
    for (const RunHandle& run : core_->AllRuns()) {
      if (run.run_key == Key(job)) return true;
    }
    return false;
  }

 private:
  Options options_;
  JournalContent content_;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  absl::Duration wall_step_;
  std::unique_ptr<AgentCore> core_;
  Output last_;
};

}  // namespace muster::agents

#endif  // MUSTER_TESTS_UNIT_AGENTS_CORE_HARNESS_H_
