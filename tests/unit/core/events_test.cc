// Tests the events of runs that agents report.
#include "broker/core/timestamps.h"
#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class EventsTest : public CoreTest {
 protected:
  EventsTest() {
    session_ = Connect("a");
    job_ = MustSubmit(Spec());
    key_ = Key(job_);
  }

  SessionId session_;
  uint64_t job_;
  std::string key_;
};

TEST_F(EventsTest, AJobFollowsItsRunToTheEnd) {
  Report(session_,
         {Event(1, key_, v1::RUN_STATE_LAUNCHING), Event(2, key_, v1::RUN_STATE_PENDING)});
  EXPECT_EQ(Job(job_).state(), v1::JOB_STATE_PENDING);
  Report(session_, {Event(3, key_, v1::RUN_STATE_RUNNING)});
  EXPECT_EQ(Job(job_).state(), v1::JOB_STATE_RUNNING);
  Report(session_, {Event(4, key_, v1::RUN_STATE_SUSPENDED)});
  EXPECT_EQ(Job(job_).state(), v1::JOB_STATE_SUSPENDED);
  Report(session_,
         {Event(5, key_, v1::RUN_STATE_RUNNING), Event(6, key_, v1::RUN_STATE_SUCCEEDED)});
  const v1::Job job = Job(job_);
  EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_TRUE(job.has_start_time());
  EXPECT_TRUE(job.has_end_time());
  EXPECT_EQ(job.job_sequence(), 8u);
  EXPECT_THAT(History(job_), SizeIs(8));
  EXPECT_EQ(core_->counters().active_runs, 0u);
}

TEST_F(EventsTest, SeveralStepsOfARunInOneReportAreOneUpdate) {
  Report(session_,
         {Event(1, key_, v1::RUN_STATE_LAUNCHING), Event(2, key_, v1::RUN_STATE_PENDING),
          Event(3, key_, v1::RUN_STATE_RUNNING), Event(4, key_, v1::RUN_STATE_SUCCEEDED)});
  EXPECT_EQ(CountChanges<UpdateJob>(), 1);
  EXPECT_EQ(CountChanges<PutRun>(), 1);
  EXPECT_EQ(CountChanges<AdvanceCluster>(), 1);
  EXPECT_EQ(CountChanges<AppendTransition>(), 4);
}

TEST_F(EventsTest, EvidenceIsPassedThrough) {
  Report(session_, {Event(1, key_, v1::RUN_STATE_LAUNCHING)});
  Report(session_, {Event(2, key_, v1::RUN_STATE_RUNNING)});
  const auto history = History(job_);
  const v1::Evidence& evidence = history.back().evidence();
  EXPECT_EQ(evidence.source(), v1::EVIDENCE_SOURCE_PROCESS);
  EXPECT_EQ(evidence.detail(), "seen");
  EXPECT_EQ(evidence.observed_at().seconds(), 1'750'000'001);
  EXPECT_EQ(Job(job_).runs(0).observed_at().seconds(), 1'750'000'001);
}

TEST_F(EventsTest, LongEvidenceIsCutAtACharacter) {
  Report(session_, {Event(1, key_, v1::RUN_STATE_LAUNCHING)});
  agent::v1::RunEvent event = Event(2, key_, v1::RUN_STATE_RUNNING);
  std::string detail(4095, 'a');
  detail += "\xc3\xa4 and more";
  event.mutable_evidence()->set_detail(detail);
  Report(session_, {event});
  EXPECT_EQ(History(job_).back().evidence().detail(), std::string(4095, 'a'));
}

TEST_F(EventsTest, QuotesAndFieldsOfAFailureAreBounded) {
  agent::v1::RunEvent event = InfraFailure(1, key_);
  for (int i = 0; i < 1000; ++i) {
    v1::FailureQuote* quote = event.mutable_failure()->add_quotes();
    quote->set_source(std::string(10'000, 's'));
    quote->set_text(std::string(10'000, 't'));
  }
  event.mutable_failure()->set_detail(std::string(10'000, 'd'));
  event.mutable_failure()->set_object(std::string(10'000, 'o'));
  Report(session_, {event});
  const v1::Failure failure = Job(job_).failure();
  ASSERT_THAT(failure.quotes(), SizeIs(8));
  EXPECT_EQ(failure.quotes(7).source().size(), 512u);
  EXPECT_EQ(failure.quotes(7).text().size(), 512u);
  EXPECT_EQ(failure.detail().size(), 1024u);
  EXPECT_EQ(failure.object().size(), 256u);
}

TEST_F(EventsTest, WhatOnlyTheBrokerFillsInIsNotTakenFromAnAgent) {
  agent::v1::RunEvent event = InfraFailure(1, key_);
  event.mutable_failure()->set_after_runs(7);
  event.mutable_evidence()->set_requested_by("ann");
  event.mutable_evidence()->set_request_reason("she wanted it");
  Report(session_, {event});
  EXPECT_EQ(Job(job_).runs(0).failure().after_runs(), 0u);
  const auto history = History(job_);
  for (const auto& step : history) {
    EXPECT_NE(step.evidence().requested_by(), "ann");
    EXPECT_EQ(step.evidence().request_reason(), "");
  }
}

TEST_F(EventsTest, ARestartByTheSchedulerIsAStepAndItsCountNeverFalls) {
  Report(session_,
         {Event(1, key_, v1::RUN_STATE_LAUNCHING), Event(2, key_, v1::RUN_STATE_RUNNING)});
  agent::v1::RunEvent requeued = Event(3, key_, v1::RUN_STATE_PENDING);
  requeued.set_restarts(1);
  Report(session_, {requeued});
  EXPECT_EQ(Job(job_).runs(0).restarts(), 1u);
  EXPECT_EQ(History(job_).back().kind(), v1::TRANSITION_KIND_RESTARTED);
  EXPECT_EQ(History(job_).back().run_state(), v1::RUN_STATE_PENDING);
  Report(session_, {Event(4, key_, v1::RUN_STATE_RUNNING)});
  EXPECT_EQ(Job(job_).runs(0).restarts(), 1u);
  EXPECT_EQ(History(job_).back().kind(), v1::TRANSITION_KIND_UNSPECIFIED);
  // Nobody saw it pending.
  agent::v1::RunEvent again = Event(5, key_, v1::RUN_STATE_RUNNING);
  again.set_restarts(2);
  Report(session_, {again});
  EXPECT_EQ(Job(job_).runs(0).restarts(), 2u);
  EXPECT_EQ(History(job_).back().kind(), v1::TRANSITION_KIND_RESTARTED);
  EXPECT_EQ(History(job_).back().run_state(), v1::RUN_STATE_RUNNING);
  const size_t steps = History(job_).size();
  again.set_sequence(6);
  again.set_restarts(1);
  Report(session_, {again});
  EXPECT_EQ(Job(job_).runs(0).restarts(), 2u);
  EXPECT_THAT(History(job_), SizeIs(steps));
}

TEST_F(EventsTest, ARestartOfARunThatHasEndedChangesNothingOfTheJob) {
  Report(session_, {Event(1, key_, v1::RUN_STATE_FAILED)});
  agent::v1::RunEvent late = Event(2, key_, v1::RUN_STATE_FAILED);
  late.set_restarts(3);
  Report(session_, {late});
  EXPECT_EQ(History(job_).back().kind(), v1::TRANSITION_KIND_UNSPECIFIED);
  EXPECT_EQ(Job(job_).state(), v1::JOB_STATE_FAILED);
}

TEST_F(EventsTest, TheEstimatedStartIsThatOfTheLastEventAndEndsWithTheStart) {
  agent::v1::RunEvent event = Event(1, key_, v1::RUN_STATE_LAUNCHING);
  Report(session_, {event});
  event = Event(2, key_, v1::RUN_STATE_PENDING);
  SetTimestamp(now_ + absl::Hours(30), event.mutable_estimated_start_time());
  Report(session_, {event});
  EXPECT_EQ(ToTime(Job(job_).runs(0).estimated_start_time()), now_ + absl::Hours(30));
  event.set_sequence(3);
  event.mutable_estimated_start_time()->set_seconds(9'000'000'000'000'000'000);
  Report(session_, {event});
  EXPECT_LT(ToTime(Job(job_).runs(0).estimated_start_time()), now_ + absl::Hours(24 * 4000));
  Report(session_, {Event(4, key_, v1::RUN_STATE_PENDING)});
  EXPECT_FALSE(Job(job_).runs(0).has_estimated_start_time());
  event.set_sequence(5);
  event.set_state(v1::RUN_STATE_RUNNING);
  Report(session_, {event});
  EXPECT_FALSE(Job(job_).runs(0).has_estimated_start_time());
}

TEST_F(EventsTest, ARunThatWaitsAgainHasNoNodes) {
  agent::v1::RunEvent event = Event(2, key_, v1::RUN_STATE_STARTING);
  event.add_nodes("node-1");
  Report(session_, {Event(1, key_, v1::RUN_STATE_LAUNCHING), event});
  EXPECT_THAT(Job(job_).runs(0).nodes(), ElementsAre("node-1"));
  Report(session_, {Event(3, key_, v1::RUN_STATE_PENDING)});
  EXPECT_THAT(Job(job_).runs(0).nodes(), IsEmpty());
}

TEST_F(EventsTest, AReasonIsAsOldAsItsWords) {
  const auto pending = [&](uint64_t sequence, const char* reason, int64_t seen) {
    agent::v1::RunEvent event = Event(sequence, key_, v1::RUN_STATE_PENDING);
    *event.mutable_state_reason() = Reason(reason);
    event.mutable_evidence()->mutable_observed_at()->set_seconds(seen);
    return event;
  };
  const int64_t begin = absl::ToUnixSeconds(now_);
  Report(session_, {Event(1, key_, v1::RUN_STATE_LAUNCHING), pending(2, "Priority", begin)});
  EXPECT_EQ(Job(job_).runs(0).state_reason().since().seconds(), begin);
  Report(session_, {pending(3, "Priority", begin + 60)});
  EXPECT_EQ(Job(job_).runs(0).state_reason().since().seconds(), begin);
  Report(session_, {pending(4, "Resources", begin + 90)});
  EXPECT_EQ(Job(job_).runs(0).state_reason().since().seconds(), begin + 90);
  Report(session_, {Event(5, key_, v1::RUN_STATE_RUNNING)});
  EXPECT_FALSE(Job(job_).runs(0).state_reason().has_since());
}

TEST_F(EventsTest, LongReasonsAndFailuresAreCut) {
  agent::v1::RunEvent event = Event(1, key_, v1::RUN_STATE_FAILED);
  const std::string talk(100'000, 'x');
  *event.mutable_state_reason() = Reason(talk);
  event.mutable_failure()->set_message(talk);
  event.mutable_failure()->set_remedy(talk);
  Report(session_, {event});
  EXPECT_LT(Job(job_).ByteSizeLong(), 30'000u);
}

TEST_F(EventsTest, AnEventOfAnySizeLeavesAJobThatFitsIntoOneAnswer) {
  agent::v1::RunEvent event = Event(1, key_, v1::RUN_STATE_FAILED);
  event.set_external_id(std::string(5'000'000, 'x'));
  event.add_nodes(std::string(5'000'000, 'x'));
  for (int i = 0; i < 100'000; ++i) event.add_nodes(std::string(100, 'x'));
  event.mutable_evidence()
      ->GetReflection()
      ->MutableUnknownFields(event.mutable_evidence())
      ->AddLengthDelimited(99, std::string(5'000'000, 'x'));
  Report(session_, {event});
  const v1::Job job = Job(job_);
  EXPECT_EQ(job.runs(0).external_id().size(), 128u);
  EXPECT_EQ(job.runs(0).nodes(0).size(), 253u);
  EXPECT_LT(job.ByteSizeLong(), 300'000u);
  EXPECT_LT(History(job_).back().ByteSizeLong(), 1'000u);
}

TEST_F(EventsTest, TheReplicasAreThoseOfTheLastEventThatHasAny) {
  agent::v1::RunEvent event = Event(1, key_, v1::RUN_STATE_LAUNCHING);
  event.add_replicas()->set_name("pod-0");
  event.add_replicas()->set_name("pod-1");
  Report(session_, {event});
  Report(session_, {Event(2, key_, v1::RUN_STATE_PENDING)});
  EXPECT_EQ(Job(job_).runs(0).replicas_size(), 2);
  const size_t steps = History(job_).size();
  event = Event(3, key_, v1::RUN_STATE_PENDING);
  event.add_replicas()->mutable_issue()->set_reason("Unschedulable");
  Report(session_, {event});
  ASSERT_EQ(Job(job_).runs(0).replicas_size(), 1);
  EXPECT_EQ(Job(job_).runs(0).replicas(0).issue().reason(), "Unschedulable");
  EXPECT_THAT(History(job_), SizeIs(steps)) << "they are no step of the job";
}

TEST_F(EventsTest, ReplicasOfAnySizeAreCutAndTheLowerRanksStay) {
  agent::v1::RunEvent event = Event(1, key_, v1::RUN_STATE_LAUNCHING);
  for (uint32_t rank = 0; rank < 1000; ++rank) {
    v1::Replica* replica = event.add_replicas();
    replica->set_rank(rank);
    replica->mutable_issue()->set_message(std::string(rank == 0 ? 100'000 : 10, 'x'));
    replica->mutable_issue()->mutable_since()->set_seconds(9'000'000'000'000'000'000);
  }
  Report(session_, {event});
  v1::Run run = Job(job_).runs(0);
  ASSERT_EQ(run.replicas_size(), 256);
  EXPECT_EQ(run.replicas(255).rank(), 255u);
  EXPECT_EQ(run.replicas(0).issue().message().size(), 1024u);
  EXPECT_EQ(ToTime(run.replicas(0).issue().since()), now_ + absl::Hours(1));

  event.set_sequence(2);
  for (v1::Replica& replica : *event.mutable_replicas()) {
    for (std::string* text :
         {replica.mutable_name(), replica.mutable_node(), replica.mutable_phase(),
          replica.mutable_issue()->mutable_reason(), replica.mutable_issue()->mutable_message()}) {
      text->assign(100'000, 'x');
    }
  }
  Report(session_, {event});
  run = Job(job_).runs(0);
  EXPECT_EQ(run.replicas(0).name().size(), 253u);
  EXPECT_GT(run.replicas_size(), 100);
  EXPECT_LT(run.ByteSizeLong(), 270'000u);
}

TEST_F(EventsTest, TimesOutsideTheLifeOfTheRunAreMovedToItsEdges) {
  agent::v1::RunEvent event = Event(1, key_, v1::RUN_STATE_FAILED);
  event.mutable_start_time()->set_seconds(-9'000'000'000'000'000'000);
  event.mutable_end_time()->set_seconds(9'000'000'000'000'000'000);
  event.mutable_evidence()->mutable_observed_at()->set_seconds(0);
  Report(session_, {event});
  const v1::Job job = Job(job_);
  EXPECT_EQ(ToTime(job.start_time()), now_ - absl::Hours(1));
  EXPECT_EQ(ToTime(job.end_time()), now_ + absl::Hours(1));
  EXPECT_EQ(ToTime(job.runs(0).observed_at()), now_ - absl::Hours(1));
}

TEST_F(EventsTest, TheRunKeepsWhatTheEventsSay) {
  Report(session_, {Event(1, key_, v1::RUN_STATE_LAUNCHING)});
  agent::v1::RunEvent pending = Event(2, key_, v1::RUN_STATE_PENDING);
  pending.set_external_id("77");
  *pending.mutable_state_reason() = Reason("Resources");
  Report(session_, {pending});
  EXPECT_EQ(Job(job_).state_reason().message(), "Resources");
  agent::v1::RunEvent running = Event(3, key_, v1::RUN_STATE_RUNNING);
  running.add_nodes("n1");
  running.add_nodes("n2");
  running.mutable_start_time()->set_seconds(1'750'000'100);
  Report(session_, {running});
  agent::v1::RunEvent failed = Event(4, key_, v1::RUN_STATE_FAILED);
  failed.mutable_end_time()->set_seconds(1'750'000'200);
  failed.mutable_exit()->set_code(3);
  failed.mutable_failure()->set_failure_class(v1::FAILURE_CLASS_PROGRAM);
  Report(session_, {failed});
  const v1::Job job = Job(job_);
  const v1::Run& run = job.runs(0);
  EXPECT_EQ(run.external_id(), "77");
  EXPECT_EQ(run.state_reason().message(), "");
  EXPECT_THAT(run.nodes(), ElementsAre("n1", "n2"));
  EXPECT_EQ(run.start_time().seconds(), 1'750'000'100);
  EXPECT_EQ(run.exit().code(), 3);
  EXPECT_EQ(job.start_time().seconds(), 1'750'000'100);
  EXPECT_EQ(job.end_time().seconds(), 1'750'000'200);
  EXPECT_EQ(job.exit().code(), 3);
  EXPECT_EQ(job.failure().failure_class(), v1::FAILURE_CLASS_PROGRAM);
}

TEST_F(EventsTest, AnEventInTheSameStateUpdatesTheRunAndIsNoTransition) {
  Report(session_, {Event(1, key_, v1::RUN_STATE_LAUNCHING)});
  Report(session_, {Event(2, key_, v1::RUN_STATE_PENDING)});
  agent::v1::RunEvent event = Event(3, key_, v1::RUN_STATE_PENDING);
  *event.mutable_state_reason() = Reason("Priority");
  Report(session_, {event});
  EXPECT_EQ(CountChanges<AppendTransition>(), 0);
  EXPECT_EQ(CountChanges<UpdateJob>(), 0);
  EXPECT_EQ(Job(job_).state_reason().message(), "Priority");
  EXPECT_EQ(Acked(session_), 3u);
}

TEST_F(EventsTest, TheFirstStartIsTheJobsStart) {
  Report(session_, {Event(1, key_, v1::RUN_STATE_LAUNCHING)});
  agent::v1::RunEvent first = Event(2, key_, v1::RUN_STATE_RUNNING);
  first.mutable_start_time()->set_seconds(1'750'000'100);
  agent::v1::RunEvent requeued = Event(3, key_, v1::RUN_STATE_PENDING);
  agent::v1::RunEvent second = Event(4, key_, v1::RUN_STATE_RUNNING);
  second.mutable_start_time()->set_seconds(1'750'000'500);
  Report(session_, {first, requeued});
  EXPECT_EQ(Job(job_).state(), v1::JOB_STATE_PENDING);
  Restart();
  session_ = Connect("a");
  Report(session_, {second});
  EXPECT_EQ(Job(job_).start_time().seconds(), 1'750'000'100);
  EXPECT_EQ(Job(job_).runs(0).start_time().seconds(), 1'750'000'500);
}

TEST_F(EventsTest, EventsAreAcknowledgedOnceTheyAreCommitted) {
  Report(session_,
         {Event(1, key_, v1::RUN_STATE_LAUNCHING), Event(2, key_, v1::RUN_STATE_PENDING)});
  EXPECT_EQ(Acked(session_), 2u);
  EXPECT_EQ(store_.Restore(now_)->clusters[0].acked_event_sequence, 2u);
}

TEST_F(EventsTest, ARepeatedEventIsAcknowledgedAndChangesNothing) {
  Report(session_, {Event(1, key_, v1::RUN_STATE_LAUNCHING)});
  Report(session_, {Event(1, key_, v1::RUN_STATE_LAUNCHING)});
  EXPECT_THAT(last_.changes, IsEmpty());
  EXPECT_EQ(Acked(session_), 1u);
  Report(session_,
         {Event(1, key_, v1::RUN_STATE_LAUNCHING), Event(2, key_, v1::RUN_STATE_PENDING)});
  EXPECT_THAT(History(job_), SizeIs(4));
}

TEST_F(EventsTest, SequencesGoOnAfterARestart) {
  const uint64_t last = *store_.LastSequence();
  Restart();
  session_ = Connect("a");
  Report(session_, {Event(1, key_, v1::RUN_STATE_LAUNCHING)});
  EXPECT_GT(History(job_).back().sequence(), last);
}

TEST_F(EventsTest, ARepeatedEventIsKnownAfterARestart) {
  Report(session_, {Event(1, key_, v1::RUN_STATE_LAUNCHING)});
  Restart();
  session_ = Connect("a");
  EXPECT_EQ(Welcomed(session_)->acked_event_sequence(), 1u);
  Report(session_, {Event(1, key_, v1::RUN_STATE_LAUNCHING)});
  EXPECT_THAT(History(job_), SizeIs(3));
}

TEST_F(EventsTest, AGapEndsTheConnection) {
  Report(session_,
         {Event(1, key_, v1::RUN_STATE_LAUNCHING), Event(3, key_, v1::RUN_STATE_RUNNING)});
  EXPECT_EQ(Acked(session_), 1u);
  ASSERT_TRUE(Closed(session_).has_value());
  EXPECT_EQ(ReasonOf(*Closed(session_)), "EVENT_GAP");
  EXPECT_EQ(Job(job_).runs(0).state(), v1::RUN_STATE_LAUNCHING);
  EXPECT_EQ(Clusters()[0].state(), v1::CLUSTER_STATE_DISCONNECTED);
}

TEST_F(EventsTest, AReportOfTooManyEventsEndsTheConnection) {
  std::vector<agent::v1::RunEvent> events;
  for (uint64_t i = 1; i <= 1001; ++i) events.push_back(Event(i, key_, v1::RUN_STATE_PENDING));
  Report(session_, events);
  EXPECT_TRUE(Closed(session_).has_value());
  EXPECT_FALSE(Acked(session_).has_value());
}

TEST_F(EventsTest, AnIllegalTransitionIsCountedAndAcknowledged) {
  Report(session_, {Event(1, key_, v1::RUN_STATE_LAUNCHING)});
  Report(session_, {Event(2, key_, v1::RUN_STATE_SUCCEEDED), Event(3, key_, v1::RUN_STATE_RUNNING),
                    Event(4, key_, v1::RUN_STATE_FAILED)});
  EXPECT_EQ(Job(job_).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(core_->counters().illegal_transitions, 2u);
  EXPECT_EQ(Acked(session_), 4u);
  EXPECT_THAT(History(job_), SizeIs(4));
}

TEST_F(EventsTest, AnEventOfAnUnknownRunIsCountedAndAcknowledged) {
  uint64_t sequence = 0;
  for (const std::string& key :
       {Key(99), Key(job_, 2), std::string("zzzz-1-1"), std::string("junk"), std::string()}) {
    Report(session_, {Event(++sequence, key, v1::RUN_STATE_RUNNING)});
    EXPECT_EQ(Acked(session_), sequence);
    EXPECT_EQ(core_->counters().illegal_transitions, sequence);
  }
}

TEST_F(EventsTest, AnotherClustersRunIsUnknown) {
  const SessionId b = Connect("b");
  Report(b, {Event(1, key_, v1::RUN_STATE_FAILED)});
  EXPECT_EQ(core_->counters().illegal_transitions, 1u);
  EXPECT_EQ(Job(job_).state(), v1::JOB_STATE_PENDING);
}

TEST_F(EventsTest, ALostRunFailsItsJobAsInfrastructure) {
  Report(session_, {Event(1, key_, v1::RUN_STATE_LOST)});
  const v1::Job job = Job(job_);
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.failure().failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_EQ(job.failure().code(), v1::FAILURE_CODE_LOST);
  EXPECT_EQ(job.failure().message(), "Nobody knows of the run any more");
  EXPECT_EQ(job.runs(0).state(), v1::RUN_STATE_LOST);
}

TEST_F(EventsTest, ALostRunKeepsTheSentenceOfAnAgentWithoutCodes) {
  agent::v1::RunEvent event = Event(1, key_, v1::RUN_STATE_LOST);
  event.mutable_failure()->set_message("the run's directory was removed");
  Report(session_, {event});
  EXPECT_EQ(Job(job_).failure().message(), "the run's directory was removed");
  EXPECT_EQ(Job(job_).failure().code(), v1::FAILURE_CODE_UNSPECIFIED);
}

TEST_F(EventsTest, ARunLeavesMemoryOnceItsLogsAreComplete) {
  Report(session_, {Event(1, key_, v1::RUN_STATE_LAUNCHING)});
  Report(session_, {Event(2, key_, v1::RUN_STATE_SUCCEEDED)});
  EXPECT_FALSE(Job(job_).runs(0).logs_complete());
  Restart();
  session_ = Connect([&] {
    agent::v1::AgentHello hello = Hello("a");
    hello.add_runs()->set_run_key(key_);
    return hello;
  }());
  EXPECT_THAT(Released(session_), IsEmpty());
  Report(session_, {LogsComplete(3, key_, v1::RUN_STATE_SUCCEEDED)});
  EXPECT_TRUE(Job(job_).runs(0).logs_complete());
  EXPECT_EQ(CountChanges<PutRun>(), 1);
  Report(session_, {Event(4, key_, v1::RUN_STATE_SUCCEEDED)});
  EXPECT_EQ(core_->counters().illegal_transitions, 1u);
}

TEST_F(EventsTest, TheEndAndItsLogsCanComeInOneEvent) {
  Report(session_, {LogsComplete(1, key_, v1::RUN_STATE_FAILED)});
  const v1::Job job = Job(job_);
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_TRUE(job.runs(0).logs_complete());
  EXPECT_TRUE(job.has_end_time());
}

TEST_F(EventsTest, LogsOfARunThatHasNotEndedAreNotComplete) {
  Report(session_, {LogsComplete(1, key_, v1::RUN_STATE_RUNNING)});
  EXPECT_EQ(core_->counters().illegal_transitions, 1u);
  EXPECT_EQ(Job(job_).state(), v1::JOB_STATE_PENDING);
}

TEST_F(EventsTest, WatchersHearOfTheJobsThatChanged) {
  const uint64_t other = MustSubmit(Spec());
  Report(session_,
         {Event(1, Key(other), v1::RUN_STATE_LAUNCHING), Event(2, key_, v1::RUN_STATE_LAUNCHING)});
  Report(session_,
         {Event(3, Key(other), v1::RUN_STATE_RUNNING), Event(4, key_, v1::RUN_STATE_RUNNING),
          Event(5, key_, v1::RUN_STATE_SUCCEEDED)});
  std::vector<uint64_t> jobs;
  uint64_t sequence = 0;
  for (const Effect& effect : last_.effects) {
    if (const auto* changed = std::get_if<JobsChanged>(&effect)) {
      jobs.insert(jobs.end(), changed->jobs.begin(), changed->jobs.end());
      sequence = changed->sequence;
    }
  }
  EXPECT_THAT(jobs, ElementsAre(job_, other));
  EXPECT_EQ(sequence, *store_.LastSequence());
}

TEST_F(EventsTest, AJobWhoseRunEndsWithoutHavingBegunIsNeverRunning) {
  const uint64_t ran = MustSubmit(Spec());
  const uint64_t waited = MustSubmit(Spec());
  uint64_t sequence = 0;
  for (const uint64_t id : {ran, waited}) {
    agent::v1::RunEvent ends = Event(sequence + 2, Key(id), v1::RUN_STATE_FINISHING);
    if (id == ran) ends.mutable_start_time()->set_seconds(1'772'366'400);
    Report(session_, {Event(sequence + 1, Key(id), v1::RUN_STATE_LAUNCHING), ends});
    sequence += 2;
    EXPECT_EQ(History(id).back().run_state(), v1::RUN_STATE_FINISHING);
  }
  EXPECT_EQ(Job(ran).state(), v1::JOB_STATE_RUNNING) << "though nobody saw it run";
  EXPECT_EQ(Job(waited).state(), v1::JOB_STATE_PENDING);
  EXPECT_EQ(History(waited).back().job_state(), v1::JOB_STATE_PENDING);
  Report(session_, {Event(++sequence, Key(waited), v1::RUN_STATE_CANCELED)});
  EXPECT_EQ(Job(waited).state(), v1::JOB_STATE_CANCELED);
}

}  // namespace
}  // namespace muster::core
