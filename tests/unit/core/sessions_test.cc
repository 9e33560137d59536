// Agents that come, go, come back and are refused.
#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SessionsTest : public CoreTest {
 protected:
  static agent::v1::AgentHello Holding(std::vector<std::string> run_keys) {
    agent::v1::AgentHello hello = Hello("a");
    for (std::string& key : run_keys) hello.add_runs()->set_run_key(std::move(key));
    return hello;
  }
};

TEST_F(SessionsTest, TheWelcomeSaysWhoTheBrokerIs) {
  const auto welcome = Welcomed(Connect("a"));
  ASSERT_TRUE(welcome.has_value());
  EXPECT_EQ(welcome->instance(), "k7m2");
  EXPECT_EQ(welcome->broker_epoch(), 1u);
  EXPECT_EQ(welcome->agent_epoch(), 1u);
  EXPECT_EQ(welcome->heartbeat_interval().seconds(), 5);
  EXPECT_EQ(welcome->acked_event_sequence(), 0u);
  EXPECT_EQ(CountChanges<PutCluster>(), 1);
}

TEST_F(SessionsTest, TheWelcomeIsTheFirstMessage) {
  Connect("a");
  MustSubmit(Spec());
  Restart();
  Connect(Holding({"zzzz-1-1"}));
  ASSERT_FALSE(last_.effects.empty());
  const auto* first = std::get_if<SendToAgent>(&last_.effects[0]);
  ASSERT_NE(first, nullptr);
  EXPECT_TRUE(first->message.has_welcome());
}

TEST_F(SessionsTest, TheAgentEpochRisesWithEachConnection) {
  Gone(Connect("a"));
  Restart();
  EXPECT_EQ(Welcomed(Connect("a"))->agent_epoch(), 2u);
}

TEST_F(SessionsTest, AProcessThatComesBackAfterAnotherOneIsACopyAndIsTold) {
  const auto connect = [this](uint64_t process) {
    agent::v1::AgentHello hello = Hello("a");
    hello.set_process(process);
    EXPECT_FALSE(Closed(Connect(hello)).has_value());
  };
  const auto told = [this] {
    const ClustersReply clusters = ListClusters({.name = "a"});
    const auto& issues = clusters.clusters[0].inventory().issues();
    return std::count_if(issues.begin(), issues.end(), [](const v1::ClusterIssue& issue) {
      return issue.code() == v1::CLUSTER_ISSUE_CODE_AGENT_CLONED;
    });
  };
  for (const uint64_t process : {1, 1, 2, 2, 3}) connect(process);
  EXPECT_EQ(told(), 0) << "it was restarted twice";
  connect(2);
  EXPECT_EQ(told(), 1);
  connect(3);
  EXPECT_EQ(told(), 1);
  now_ += absl::Minutes(11);
  Tick();
  EXPECT_EQ(told(), 0);
  connect(0);
  connect(3);
  EXPECT_EQ(told(), 1) << "one that does not tell its name is seen, too";
}

TEST_F(SessionsTest, AnotherProtocolVersionIsRefused) {
  agent::v1::AgentHello hello = Hello("a");
  hello.set_protocol_version(2);
  const auto closed = Closed(Connect(hello));
  ASSERT_TRUE(closed.has_value());
  EXPECT_EQ(closed->code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(*closed), "PROTOCOL_VERSION");
  EXPECT_THAT(Clusters(), IsEmpty());
}

TEST_F(SessionsTest, AnAgentOfAnotherBrokerIsRefused) {
  agent::v1::AgentHello hello = Hello("a");
  hello.set_instance("zzzz");
  EXPECT_EQ(ReasonOf(*Closed(Connect(hello))), "WRONG_INSTANCE");
  hello.set_instance("k7m2");
  EXPECT_FALSE(Closed(Connect(hello)).has_value());
}

TEST_F(SessionsTest, ABrokerThatWasRestoredFromAnOldCopyRefusesItsAgents) {
  agent::v1::AgentHello hello = Hello("a");
  hello.set_broker_epoch(2);
  EXPECT_EQ(ReasonOf(*Closed(Connect(hello))), "BROKER_EPOCH");
}

// The copy was started as often as the original.
TEST_F(SessionsTest, ABrokerThatDoesNotKnowAnAgentsJobYetIsAnOldCopy) {
  const uint64_t job = MustSubmit(Spec());
  EXPECT_FALSE(Closed(Connect(Holding({Key(job)}))).has_value());
  EXPECT_EQ(ReasonOf(*Closed(Connect(Holding({Key(job), Key(job + 5)})))), "BROKER_EPOCH");
  EXPECT_EQ(MustSubmit(Spec()), job + 6) << "the lost jobs' numbers are not given again";
  EXPECT_EQ(ReasonOf(*Closed(Connect(Holding({Key(job + 1)})))), "BROKER_EPOCH");
  EXPECT_EQ(ReasonOf(*Closed(Connect(Holding({Key(1'000'000'000)})))), "BROKER_EPOCH");
  EXPECT_EQ(MustSubmit(Spec()), job + 7) << "that was no job's number";
}

TEST_F(SessionsTest, ANameBelongsToTheClusterThatHadItFirst) {
  Gone(Connect("a"));
  agent::v1::AgentHello hello = Hello("a");
  hello.mutable_inventory()->set_identity("other");
  EXPECT_EQ(ReasonOf(*Closed(Connect(hello))), "WRONG_CLUSTER");
  Restart();
  EXPECT_EQ(ReasonOf(*Closed(Connect(hello))), "WRONG_CLUSTER");
  hello = Hello("a");
  hello.set_kind(v1::CLUSTER_KIND_SLURM);
  EXPECT_EQ(ReasonOf(*Closed(Connect(hello))), "WRONG_CLUSTER");
}

TEST_F(SessionsTest, ASecondAgentOfAConnectedNameIsRefused) {
  const SessionId first = Connect("a");
  agent::v1::AgentHello hello = Hello("a");
  hello.set_journal_id("another");
  const auto closed = Closed(Connect(hello));
  ASSERT_TRUE(closed.has_value());
  EXPECT_EQ(closed->code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReasonOf(*closed), "NAME_CONNECTED");
  MustSubmit(Spec());
  EXPECT_THAT(Assigned(first), SizeIs(1));
}

TEST_F(SessionsTest, TheSameAgentReplacesItsOldConnection) {
  const SessionId first = Connect("a");
  const uint64_t job = MustSubmit(Spec());
  const SessionId second = Connect(Holding({Key(job)}));
  ASSERT_TRUE(Closed(first).has_value());
  EXPECT_TRUE(Closed(first)->ok());
  Report(first, {Event(1, Key(job), v1::RUN_STATE_RUNNING)});
  EXPECT_THAT(last_.changes, IsEmpty());
  EXPECT_THAT(last_.effects, IsEmpty());
  Beat(first);
  EXPECT_EQ(core_->counters().stale_messages, 2u);
  Gone(first);
  EXPECT_EQ(Clusters()[0].state(), v1::CLUSTER_STATE_CONNECTED);
  MustSubmit(Spec());
  EXPECT_THAT(Assigned(second), SizeIs(1));
}

TEST_F(SessionsTest, MalformedHellosAreRefusedByField) {
  auto refusal = [&](auto change) {
    agent::v1::AgentHello hello = Hello("a");
    change(hello);
    const auto closed = Closed(Connect(hello));
    EXPECT_TRUE(closed.has_value());
    EXPECT_THAT(Clusters(), IsEmpty());
    return closed ? std::string(closed->ToString()) : "";
  };
  EXPECT_THAT(refusal([](auto& h) { h.set_cluster("Not A Name"); }), HasSubstr("Not A Name"));
  EXPECT_THAT(refusal([](auto& h) { h.clear_kind(); }), HasSubstr("hello.kind"));
  EXPECT_THAT(refusal([](auto& h) { h.clear_journal_id(); }), HasSubstr("hello.journal_id"));
  EXPECT_THAT(refusal([](auto& h) { h.clear_inventory(); }), HasSubstr("identity"));
  EXPECT_THAT(refusal([](auto& h) { h.set_max_active_runs(0); }), HasSubstr("max_active_runs"));
  EXPECT_THAT(refusal([](auto& h) { h.set_max_active_runs(2'000'000); }), HasSubstr("1000000"));
  EXPECT_THAT(refusal([](auto& h) {
                h.mutable_inventory()->add_issues()->set_message(std::string(2 << 20, 'x'));
              }),
              HasSubstr("hello.inventory"));
}

TEST_F(SessionsTest, ActiveRunsThatTheAgentDoesNotListAreSentAgain) {
  Gone(Connect("a"));
  Connect("a");
  const uint64_t one = MustSubmit(Spec());
  const uint64_t two = MustSubmit(Spec());
  for (int round = 0; round < 2; ++round) {
    const SessionId session = Connect(Holding({Key(two)}));
    const auto assignments = Assignments(session);
    ASSERT_THAT(assignments, SizeIs(1));
    EXPECT_EQ(assignments[0].run_key(), Key(one));
    EXPECT_EQ(assignments[0].job_id(), one);
    EXPECT_EQ(assignments[0].run(), 1u);
    EXPECT_TRUE(assignments[0].may_have_been_launched());
    EXPECT_FALSE(assignments[0].cancel_requested());
    Restart();
  }
}

TEST_F(SessionsTest, RunsThatAnAgentHasLostAreSentAgainAFewInEachRound) {
  options_.max_assignments_per_round = 2;
  Restart(options_);
  SessionId session = Connect("a");
  for (int i = 0; i < 6; ++i) MustSubmit(Spec());
  session = Connect("a");
  EXPECT_THAT(Assigned(session), ElementsAre(Key(1), Key(2)));
  ASSERT_TRUE(Cancel({4}).ok());
  ASSERT_THAT(Assigned(session), ElementsAre(Key(3), Key(4)));
  EXPECT_FALSE(Assignments(session)[0].cancel_requested());
  EXPECT_TRUE(Assignments(session)[1].cancel_requested()) << "asked for since the agent came";
  session = Connect(Holding({Key(1), Key(2)}));
  EXPECT_THAT(Assigned(session), ElementsAre(Key(3), Key(4))) << "begins with what it lacks now";
  MustSubmit(Spec());
  EXPECT_THAT(Assigned(session), ElementsAre(Key(5), Key(6))) << "the lost ones first";
  Tick();
  EXPECT_THAT(Assigned(session), ElementsAre(Key(7)));
}

TEST_F(SessionsTest, RunsThatTheBrokerDoesNotHoldAreReleased) {
  const SessionId session = Connect("a");
  const uint64_t job = MustSubmit(Spec());
  const uint64_t done = MustSubmit(Spec());
  Report(session, {LogsComplete(1, Key(done), v1::RUN_STATE_FAILED)});
  const SessionId again = Connect(Holding({Key(job), Key(done), Key(job, 2), "zzzz-1-1", "junk"}));
  EXPECT_THAT(Released(again), ElementsAre(Key(done), Key(job, 2), "zzzz-1-1", "junk"));
  EXPECT_THAT(Assigned(again), IsEmpty());
}

TEST_F(SessionsTest, AnotherClustersRunIsReleased) {
  Connect("b");
  const uint64_t job = MustSubmit(Spec());
  EXPECT_THAT(Released(Connect(Holding({Key(job)}))), ElementsAre(Key(job)));
}

TEST_F(SessionsTest, ARunAwaitingItsLogsIsKept) {
  const SessionId session = Connect("a");
  const uint64_t job = MustSubmit(Spec());
  Report(session, {Event(1, Key(job), v1::RUN_STATE_FAILED)});
  const SessionId again = Connect(Holding({Key(job)}));
  EXPECT_THAT(Released(again), IsEmpty());
  EXPECT_THAT(Assigned(again), IsEmpty());
}

TEST_F(SessionsTest, AnEndedRunWhoseJournalIsGoneIsNotSentAgain) {
  const SessionId session = Connect("a");
  const uint64_t job = MustSubmit(Spec());
  Report(session, {Event(1, Key(job), v1::RUN_STATE_FAILED)});
  EXPECT_THAT(Assigned(Connect("a")), IsEmpty());
  EXPECT_FALSE(Job(job).runs(0).logs_complete());
  EXPECT_THAT(store_.Restore(now_)->runs, IsEmpty()) << "no restart loads it again";
}

TEST_F(SessionsTest, ANewJournalStartsAtOneAndGetsAllActiveRuns) {
  const SessionId session = Connect("a");
  const uint64_t job = MustSubmit(Spec());
  Report(session, {Event(1, Key(job), v1::RUN_STATE_LAUNCHING)});
  Gone(session);
  agent::v1::AgentHello hello = Hello("a");
  hello.set_journal_id("new");
  const SessionId again = Connect(hello);
  EXPECT_EQ(Welcomed(again)->acked_event_sequence(), 0u);
  EXPECT_THAT(Assigned(again), ElementsAre(Key(job)));
  Report(again, {Event(1, Key(job), v1::RUN_STATE_LAUNCH_UNKNOWN)});
  EXPECT_EQ(Job(job).runs(0).state(), v1::RUN_STATE_LAUNCH_UNKNOWN);
}

TEST_F(SessionsTest, ManyRunsTravelInMessagesOfAThousand) {
  LetAllWaitOnClusters();
  agent::v1::AgentHello hello = Hello("a");
  hello.set_max_active_runs(10'000);
  Connect(hello);
  for (int i = 0; i < 2500; ++i) {
    now_ += absl::Milliseconds(1);
    Output output;
    core_->Handle(core::Submit{0, {{std::make_shared<v1::JobSpec>(Spec()), ""}}, "u", false}, now_,
                  &output);
    core_->PlaceJobs(now_, &output);
    ASSERT_TRUE(store_.Commit(output.changes).ok());
  }
  for (int i = 0; i < 2500; ++i) hello.add_runs()->set_run_key(Key(1 + i, 2));
  const SessionId again = Connect(hello);  // the fixture checks the size of each message
  EXPECT_THAT(Released(again), SizeIs(2500));
  EXPECT_THAT(Assigned(again), SizeIs(1000));
  Tick();
  EXPECT_THAT(Assigned(again), SizeIs(1000));
  Tick();
  EXPECT_THAT(Assigned(again), SizeIs(500));
}

TEST_F(SessionsTest, AHeartbeatIsAnsweredWithWhatIsAcknowledged) {
  const SessionId session = Connect("a");
  Beat(session);
  EXPECT_EQ(Acked(session), 0u);
  EXPECT_THAT(last_.changes, IsEmpty());
  const uint64_t job = MustSubmit(Spec());
  Report(session, {Event(1, Key(job), v1::RUN_STATE_LAUNCHING)});
  Beat(session);
  EXPECT_EQ(Acked(session), 1u);
}

TEST_F(SessionsTest, WhenAClusterWasHeardOfIsKnownToTheMinuteAfterARestart) {
  const SessionId session = Connect("a");
  for (int i = 0; i < 14; ++i) {
    now_ += absl::Seconds(5);
    Beat(session);
    EXPECT_EQ(CountChanges<PutCluster>(), i == 11 ? 1 : 0) << i;
  }
  const absl::Time heard = now_;
  Restart();
  const ClustersReply reply = ListClusters({});
  EXPECT_GT(reply.clusters[0].last_seen().seconds(), absl::ToUnixSeconds(heard) - 60);
}

TEST_F(SessionsTest, ASilentConnectionIsClosedAfterThreeIntervals) {
  const SessionId session = Connect("a");
  now_ += absl::Seconds(15) - absl::Nanoseconds(1);
  Tick();
  EXPECT_FALSE(Closed(session).has_value());
  Beat(session);
  now_ += absl::Seconds(15) - absl::Nanoseconds(1);
  Tick();
  EXPECT_FALSE(Closed(session).has_value());
  now_ += absl::Nanoseconds(1);
  Tick();
  ASSERT_TRUE(Closed(session).has_value());
  EXPECT_EQ(ReasonOf(*Closed(session)), "SILENT");
  const auto cluster = Clusters()[0];
  EXPECT_EQ(cluster.state(), v1::CLUSTER_STATE_DISCONNECTED);
}

TEST_F(SessionsTest, SettingTheClockMakesNoAgentSilentAndHidesNoSilence) {
  const SessionId session = Connect("a");
  now_ += absl::Hours(1);
  Do(core::Tick{absl::Hours(1)});
  EXPECT_FALSE(Closed(session).has_value());
  now_ -= absl::Hours(2);
  Do(core::Tick{-absl::Hours(2)});
  EXPECT_FALSE(Closed(session).has_value());
  now_ += absl::Seconds(15);
  Tick();
  EXPECT_TRUE(Closed(session).has_value());
}

TEST_F(SessionsTest, EventsAreASignOfLife) {
  const SessionId session = Connect("a");
  now_ += absl::Seconds(14);
  Report(session, {});
  now_ += absl::Seconds(14);
  Tick();
  EXPECT_FALSE(Closed(session).has_value());
}

TEST_F(SessionsTest, RunsStayAsTheyAreWithoutAConnection) {
  const SessionId session = Connect("a");
  const uint64_t job = MustSubmit(Spec());
  Report(session,
         {Event(1, Key(job), v1::RUN_STATE_LAUNCHING), Event(2, Key(job), v1::RUN_STATE_RUNNING)});
  Gone(session);
  now_ += absl::Hours(100);
  Tick();
  EXPECT_EQ(Job(job).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(core_->counters().active_runs, 1u);
}

TEST_F(SessionsTest, TheClusterShowsWhatItsHeartbeatsSay) {
  const SessionId session = Connect("a");
  agent::v1::AgentHeartbeat beat;
  beat.mutable_scheduler_observed_at()->set_seconds(123);
  beat.set_scheduler_error("slurmctld does not answer");
  (*beat.mutable_scheduler_calls())["squeue"] = 7;
  Beat(session, beat);
  MustSubmit(Spec());
  const auto clusters = Clusters();
  ASSERT_THAT(clusters, SizeIs(1));
  EXPECT_EQ(clusters[0].name(), "a");
  EXPECT_EQ(clusters[0].state(), v1::CLUSTER_STATE_CONNECTED);
  EXPECT_EQ(clusters[0].scheduler_observed_at().seconds(), 123);
  EXPECT_EQ(clusters[0].scheduler_error(), "slurmctld does not answer");
  EXPECT_EQ(clusters[0].scheduler_calls().at("squeue"), 7u);
  EXPECT_EQ(clusters[0].active_runs(), 1u);
  EXPECT_EQ(clusters[0].max_active_runs(), 1000u);
  EXPECT_EQ(clusters[0].last_seen().seconds(), absl::ToUnixSeconds(now_));
}

TEST_F(SessionsTest, AnInventoryIsWrittenOnlyIfItSaysSomethingNew) {
  const SessionId session = Connect("a");
  agent::v1::AgentHeartbeat beat;
  *beat.mutable_inventory() = Hello("a").inventory();
  beat.mutable_inventory()->mutable_observed_at()->set_seconds(5);
  Beat(session, beat);
  EXPECT_EQ(CountChanges<PutCluster>(), 0);
  EXPECT_EQ(Clusters()[0].inventory().observed_at().seconds(), 5);
  beat.mutable_inventory()->mutable_pools(0)->mutable_node_groups(0)->set_usable_count(1);
  Beat(session, beat);
  EXPECT_EQ(CountChanges<PutCluster>(), 1);
}

TEST_F(SessionsTest, AnAgentThatBeginsToSpeakForAnotherClusterIsClosed) {
  const SessionId session = Connect("a");
  agent::v1::AgentHeartbeat beat;
  beat.mutable_inventory()->set_identity("other");
  Beat(session, beat);
  EXPECT_EQ(ReasonOf(*Closed(session)), "WRONG_CLUSTER");
}

TEST_F(SessionsTest, AKnownClusterIsListedAfterARestart) {
  Connect("a");
  Restart();
  const auto clusters = Clusters();
  ASSERT_THAT(clusters, SizeIs(1));
  EXPECT_EQ(clusters[0].state(), v1::CLUSTER_STATE_DISCONNECTED);
  EXPECT_EQ(clusters[0].inventory().pools_size(), 1);
}

}  // namespace
}  // namespace muster::core
