// Jobs that wait for the end of other jobs.
#include "broker/core/dependencies.h"

#include <algorithm>

#include "broker/core/fingerprint.h"
#include "broker/core/timestamps.h"
#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::JobSpec After(std::initializer_list<uint64_t> jobs,
                  v1::JobOutcome outcome = v1::JOB_OUTCOME_SUCCEEDED) {
  v1::JobSpec spec = Spec();
  for (const uint64_t job : jobs) {
    v1::JobDependency& one = *spec.add_depends_on();
    one.set_job_id(job);
    one.set_outcome(outcome);
  }
  return spec;
}

v1::JobSpec AfterRequest(uint32_t place) {
  v1::JobSpec spec = Spec();
  spec.add_depends_on()->set_request(place);
  spec.mutable_depends_on(0)->set_outcome(v1::JOB_OUTCOME_SUCCEEDED);
  return spec;
}

class DependenciesTest : public CoreTest {
 protected:
  DependenciesTest() { session_ = Connect("a"); }

  void End(uint64_t job, v1::RunState state = v1::RUN_STATE_SUCCEEDED) {
    Report(session_,
           {Event(++event_, Key(job), v1::RUN_STATE_LAUNCHING), Event(++event_, Key(job), state)});
  }
  static SubmitItem Item(const v1::JobSpec& spec, const std::string& request_id = "") {
    return {std::make_shared<v1::JobSpec>(spec), request_id, RequestFingerprintOf(spec)};
  }
  // Submits with the ends that the store knows, as the use case does.
  absl::StatusOr<uint64_t> SubmitKnowing(const v1::JobSpec& spec) {
    core::Submit submit{.ticket = 77, .items = {Item(spec)}, .user = "alice"};
    for (const v1::JobDependency& one : spec.depends_on())
      submit.ends[one.job_id()] = Job(one.job_id()).state();
    Do(std::move(submit));
    for (const Effect& effect : last_.effects) {
      const auto* reply = std::get_if<SubmitReply>(&effect);
      if (reply == nullptr || reply->ticket != 77) continue;
      const auto result = ResultOf(*reply);
      if (!result.ok()) return result.status();
      return result->responses(0).job_id();
    }
    return absl::InternalError("no reply");
  }

  SessionId session_ = 0;
  uint64_t event_ = 0;
};

TEST_F(DependenciesTest, AJobStandsInNoLineUntilTheOtherHasEndedAsItNeeds) {
  const uint64_t first = MustSubmit(Spec());
  const uint64_t second = MustSubmit(After({first}));
  EXPECT_THAT(Assigned(session_), IsEmpty());
  EXPECT_EQ(core_->counters().queued, 1u);
  Report(session_, {Event(++event_, Key(first), v1::RUN_STATE_LAUNCHING),
                    Event(++event_, Key(first), v1::RUN_STATE_RUNNING)});
  EXPECT_THAT(Assigned(session_), IsEmpty());
  Report(session_, {Event(++event_, Key(first), v1::RUN_STATE_SUCCEEDED)});
  EXPECT_THAT(Assigned(session_), ElementsAre(Key(second)));
}

TEST_F(DependenciesTest, AJobWaitsForAllThatItNames) {
  const uint64_t a = MustSubmit(Spec()), b = MustSubmit(Spec());
  const uint64_t c = MustSubmit(After({a, b}));
  End(a);
  EXPECT_THAT(Assigned(session_), IsEmpty());
  End(b);
  EXPECT_THAT(Assigned(session_), ElementsAre(Key(c)));
}

TEST_F(DependenciesTest, AJobFailsAtOnceWithTheOneThatItNeedsToSucceed) {
  const uint64_t first = MustSubmit(Spec());
  const uint64_t second = MustSubmit(After({first}));
  now_ += absl::Seconds(5);
  End(first, v1::RUN_STATE_FAILED);
  const v1::Job job = Job(second);
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.failure().code(), v1::FAILURE_CODE_DEPENDENCY_FAILED);
  EXPECT_EQ(job.failure().failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_EQ(job.failure().subject(), std::to_string(first));
  EXPECT_EQ(ToTime(job.end_time()), now_);
  EXPECT_THAT(job.runs(), IsEmpty());
  const v1::Transition last = History(second).back();
  EXPECT_EQ(last.job_state(), v1::JOB_STATE_FAILED);
  EXPECT_THAT(last.evidence().detail(), HasSubstr("job 1 is FAILED"));
  EXPECT_EQ(core_->counters().queued, 0u);
  EXPECT_EQ(core_->counters().groups, 0u);
}

TEST_F(DependenciesTest, ACanceledJobIsAFailureForThoseThatWaitForIt) {
  const uint64_t first = MustSubmit(After({MustSubmit(Spec())}));
  const uint64_t needs_success = MustSubmit(After({first}));
  const uint64_t needs_failure = MustSubmit(After({first}, v1::JOB_OUTCOME_FAILED));
  const uint64_t needs_end = MustSubmit(After({first}, v1::JOB_OUTCOME_ENDED));
  EXPECT_TRUE(Cancel({first}).ok());
  EXPECT_EQ(Job(needs_success).state(), v1::JOB_STATE_FAILED);
  EXPECT_THAT(Assigned(session_), ElementsAre(Key(needs_failure), Key(needs_end)));
}

TEST_F(DependenciesTest, ASuccessFailsAJobThatNeedsAFailure) {
  const uint64_t first = MustSubmit(Spec());
  const uint64_t second = MustSubmit(After({first}, v1::JOB_OUTCOME_FAILED));
  End(first);
  EXPECT_EQ(Job(second).state(), v1::JOB_STATE_FAILED);
}

TEST_F(DependenciesTest, ARunThatIsFollowedByAnotherIsNoEnd) {
  const uint64_t first = MustSubmit(Spec());
  const uint64_t second = MustSubmit(After({first}));
  Report(session_, {InfraFailure(++event_, Key(first))});
  EXPECT_EQ(Job(first).state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(Job(second).state(), v1::JOB_STATE_QUEUED);
}

TEST_F(DependenciesTest, AJobThatHasEndedBeforeTheSubmitIsJudgedAtTheSubmit) {
  const uint64_t good = MustSubmit(Spec()), bad = MustSubmit(Spec());
  End(good);
  End(bad, v1::RUN_STATE_FAILED);
  const auto runs = SubmitKnowing(After({good}));
  ASSERT_TRUE(runs.ok()) << runs.status();
  EXPECT_THAT(Assigned(session_), ElementsAre(Key(*runs)));
  const auto fails = SubmitKnowing(After({good, bad}));
  ASSERT_TRUE(fails.ok()) << fails.status();
  EXPECT_EQ(Job(*fails).state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(Job(*fails).failure().subject(), std::to_string(bad));
}

TEST_F(DependenciesTest, ASubmitThatDoesNotKnowHowAJobEndedIsRefusedWithItsNumber) {
  const uint64_t first = MustSubmit(Spec());
  End(first);
  const absl::Status refused = SubmitOne(After({first})).status();
  EXPECT_EQ(ReasonOf(refused), "DEPENDENCY_ENDED") << refused;
  EXPECT_EQ(core_->counters().queued, 0u);
}

TEST_F(DependenciesTest, PlacesOfRequestsBecomeNumbers) {
  const auto reply = Submit({Item(Spec()), Item(AfterRequest(1)), Item(AfterRequest(2))}).result;
  ASSERT_TRUE(reply.ok()) << reply.status();
  const uint64_t first = reply->responses(0).job_id();
  EXPECT_EQ(Job(first + 1).spec().depends_on(0).job_id(), first);
  EXPECT_EQ(Job(first + 1).spec().depends_on(0).request(), 0u);
  EXPECT_EQ(Job(first + 2).spec().depends_on(0).job_id(), first + 1);
  EXPECT_THAT(Assigned(session_), ElementsAre(Key(first)));
  End(first);
  EXPECT_THAT(Assigned(session_), ElementsAre(Key(first + 1)));
}

TEST_F(DependenciesTest, ARepeatOfAChainIsTheSameJobsHoweverTheyEnded) {
  const std::vector<SubmitItem> chain = {Item(Spec(), "a"), Item(AfterRequest(1), "b")};
  const auto first = Submit(chain).result;
  ASSERT_TRUE(first.ok()) << first.status();
  End(first->responses(0).job_id());
  const auto again = Submit(chain).result;
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->responses(1).job_id(), first->responses(1).job_id());
  EXPECT_TRUE(again->responses(1).repeated_request());
}

TEST_F(DependenciesTest, TwoPlacesThatAreOneJobAreBothHeeded) {
  v1::JobSpec spec = AfterRequest(1);
  spec.add_depends_on()->set_request(2);
  spec.mutable_depends_on(1)->set_outcome(v1::JOB_OUTCOME_ENDED);
  const auto reply = Submit({Item(Spec(), "a"), Item(Spec(), "a"), Item(spec)}).result;
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->responses(0).job_id(), reply->responses(1).job_id());
  End(reply->responses(0).job_id());
  EXPECT_THAT(Assigned(session_), ElementsAre(Key(reply->responses(2).job_id())));
}

TEST_F(DependenciesTest, AHeldJobWaitsForBoth) {
  const uint64_t first = MustSubmit(Spec());
  const uint64_t second = MustSubmit(After({first}));
  EXPECT_TRUE(Hold({second}).ok());
  EXPECT_TRUE(Release({second}).ok());
  EXPECT_THAT(Assigned(session_), IsEmpty()) << "the other one runs";
  EXPECT_TRUE(Hold({second}).ok());
  End(first);
  EXPECT_THAT(Assigned(session_), IsEmpty()) << "it is held";
  EXPECT_TRUE(Release({second}).ok());
  EXPECT_THAT(Assigned(session_), ElementsAre(Key(second)));
}

TEST_F(DependenciesTest, AHeldJobFailsToo) {
  const uint64_t first = MustSubmit(Spec());
  const uint64_t second = MustSubmit(After({first}));
  EXPECT_TRUE(Hold({second}).ok());
  End(first, v1::RUN_STATE_FAILED);
  EXPECT_EQ(Job(second).state(), v1::JOB_STATE_FAILED);
}

TEST_F(DependenciesTest, AWaitingJobCanBeCanceled) {
  const uint64_t first = MustSubmit(Spec());
  const uint64_t second = MustSubmit(After({first}));
  const uint64_t third = MustSubmit(After({second}));
  EXPECT_TRUE(Cancel({second}).ok());
  EXPECT_EQ(Job(second).state(), v1::JOB_STATE_CANCELED);
  EXPECT_EQ(Job(third).state(), v1::JOB_STATE_FAILED);
  End(first);
  EXPECT_THAT(Assigned(session_), IsEmpty());
}

TEST_F(DependenciesTest, WaitingJobsWaitOnAfterARestart) {
  const uint64_t first = MustSubmit(Spec());
  const uint64_t fails = MustSubmit(Spec());
  const uint64_t second = MustSubmit(After({first}));
  const uint64_t third = MustSubmit(After({fails}));
  Restart();
  session_ = Connect("a");
  EXPECT_THAT(Assigned(session_), ElementsAre(Key(first), Key(fails))) << "lost by its agent";
  End(first);
  EXPECT_THAT(Assigned(session_), ElementsAre(Key(second)));
  End(fails, v1::RUN_STATE_FAILED);
  EXPECT_EQ(Job(third).state(), v1::JOB_STATE_FAILED);
}

TEST_F(DependenciesTest, AJobWhoseDependenciesWereMetIsInLineAfterARestart) {
  const uint64_t first = MustSubmit(Spec());
  const uint64_t second = MustSubmit(After({first}));
  EXPECT_TRUE(Hold({second}).ok());
  End(first);
  Restart();
  session_ = Connect("a");
  EXPECT_TRUE(Release({second}).ok());
  EXPECT_THAT(Assigned(session_), ElementsAre(Key(second)));
}

// More than one call judges, and more than a stack would hold.
TEST_F(DependenciesTest, AChainOfAHundredThousandFailuresEndsWithItsFirstJob) {
  constexpr uint64_t kJobs = 100'000;
  core_.reset();  // the invariants are checked at the end
  Core core(options_, *store_.Restore(now_));
  const auto commit = [&](Output* out) {
    ASSERT_TRUE(store_.Commit(out->changes).ok());
    *out = Output();
  };
  Output out;
  for (uint64_t job = 1; job <= kJobs; ++job) {
    core::Submit submit{
        .ticket = job, .items = {Item(job == 1 ? Spec() : After({job - 1}))}, .user = "alice"};
    core.Handle(std::move(submit), now_, &out);
  }
  commit(&out);
  ASSERT_EQ(core.counters().queued, kJobs);
  core.Handle(core::Cancel{.ticket = 1, .jobs = {1}, .reason = "", .user = "bob"}, now_, &out);
  commit(&out);
  ASSERT_EQ(Job(kJobs).state(), v1::JOB_STATE_QUEUED) << "each call judges a part";
  // A broker that ends in between goes on.
  Core next(options_, *store_.Restore(now_));
  int calls = 0;
  while (next.PlaceJobs(now_, &out)) ASSERT_LT(++calls, 1000);
  commit(&out);
  EXPECT_GT(calls, 5);
  EXPECT_EQ(next.counters().queued, 0u);
  EXPECT_EQ(Job(kJobs).state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(Job(kJobs).failure().subject(), std::to_string(kJobs - 1));
  EXPECT_TRUE(next.CheckInvariants().ok()) << next.CheckInvariants();
}

TEST(Dependencies, OneEndTellsAllThatWaitForItWithinTheBudget) {
  Dependencies dependencies;
  for (uint64_t job = 2; job <= 5; ++job) dependencies.Add(job, {{.job = 1}});
  dependencies.JobEnded(1, v1::JOB_STATE_SUCCEEDED);
  int budget = 3;
  std::vector<uint64_t> told;
  while (const auto verdict = dependencies.Next(&budget)) told.push_back(verdict->job);
  EXPECT_THAT(told, ElementsAre(2, 3, 4));
  EXPECT_TRUE(dependencies.has_more());
  EXPECT_TRUE(dependencies.Waits(5));
  budget = 3;
  EXPECT_EQ(dependencies.Next(&budget)->job, 5u);
  EXPECT_FALSE(dependencies.Next(&budget).has_value());
  EXPECT_FALSE(dependencies.has_more());
  EXPECT_EQ(dependencies.size(), 0u);
}

}  // namespace
}  // namespace muster::core
