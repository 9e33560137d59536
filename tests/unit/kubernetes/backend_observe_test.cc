// Tests the backend's reports of runs while its watches are not equally far.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/kubernetes/scripted_cluster.h"

namespace muster::kubernetes {
namespace {

using ::testing::HasSubstr;

constexpr char kRun[] = "k7m2-1-1";

class BackendObserveTest : public ScriptedClusterTest {
 protected:
  static Json MakeSuspendedJob() {
    Json job = MakeJob(kRun);
    job["spec"]["suspend"] = true;
    return job;
  }
  static Json MakeEndedPod() {
    return {{"metadata",
             {{"name", std::string(kRun) + "-x8f2p"},
              {"namespace", "lab"},
              {"uid", "pod-1"},
              {"resourceVersion", "6"},
              {"labels", {{kRunLabel, kRun}}}}},
            {"status", {{"phase", "Succeeded"}}}};
  }
  // Sets the API server's present answer about the Job, whatever its watch has told so far.
  void AnswerWith(const Json& job) {
    Set([&] {
      answer_first_ = [job](const ScriptedRequest& request) -> std::optional<ScriptedReply> {
        if (request.method != "GET" || !request.target.ends_with(std::string("/jobs/") + kRun))
          return std::nullopt;
        return ScriptedReply{.body = job.dump()};
      };
    });
  }
  agents::Observation See() {
    const agents::ObserveOutcome outcome = Observe(kRun);
    EXPECT_TRUE(outcome.scheduler.ok()) << outcome.scheduler;
    EXPECT_EQ(outcome.observations.size(), 1u);
    return outcome.observations.empty() ? agents::Observation() : outcome.observations[0];
  }
};

TEST_F(BackendObserveTest, AProgramThatEndsBeforeTheWatchTellsThatItsJobWasLetGoIsNotPreempted) {
  jobs_.push_back(MakeSuspendedJob());
  pods_.push_back(MakeEndedPod());
  Json let_go = MakeJob(kRun);
  let_go["metadata"]["resourceVersion"] = "8";
  AnswerWith(let_go);
  Start({kRun});
  TakeChanges();
  const agents::Observation seen = See();
  EXPECT_EQ(seen.state, v1::RUN_STATE_FINISHING);
  EXPECT_EQ(seen.reason.message(), "its pods have ended");
  EXPECT_TRUE(TakeChanges().empty()) << "and its Job is not taken away";
}

TEST_F(BackendObserveTest, NewsOfARunThatCouldNotBeLookedAtAreKept) {
  Set([&] {
    answer_first_ = [](const ScriptedRequest& request) -> std::optional<ScriptedReply> {
      if (request.method != "GET" || !request.target.ends_with(std::string("/jobs/") + kRun))
        return std::nullopt;
      return ScriptedReply{.status = 500, .body = "{}"};
    };
  });
  Start({kRun});
  EXPECT_FALSE(Observe(kRun).scheduler.ok());
  // The next look is none at all runs.
  AnswerWith(MakeJob(kRun));
  See();
}

TEST_F(BackendObserveTest, TimesOfTheServersAreComparedWithItsClockWhateverThisMachinesSays) {
  Json job = MakeJob(kRun);
  job["spec"]["completions"] = 2;
  jobs_ = {job};
  for (const char* node : {"node-1", ""}) {
    Json pod = MakeEndedPod();
    pod["metadata"]["uid"] = std::string("pod-on-") + node;
    pod["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z";
    pod["spec"]["nodeName"] = node;
    pod["status"]["phase"] = "Pending";
    pods_.push_back(std::move(pod));
  }
  agents::RunHandle run = Handle(kRun);
  auto assignment = std::make_shared<agent::v1::Assignment>();
  assignment->set_run_key(kRun);
  assignment->mutable_spec()->set_nodes(2);
  run.assignment = assignment;
  const auto see_at = [&](const std::string& time) {
    Set([&] { date_ = "Thu, 01 Jan 2026 " + time + " GMT"; });
    StartWith({run});
    const agents::ObserveOutcome outcome = backend_->Observe({run});
    EXPECT_EQ(outcome.observations.size(), 1u) << outcome.scheduler;
    return outcome.observations.at(0).state;
  };
  EXPECT_EQ(see_at("00:00:20"), v1::RUN_STATE_PENDING);
  EXPECT_EQ(see_at("01:00:00"), v1::RUN_STATE_FINISHING) << "half of its pods found no node";
}

TEST_F(BackendObserveTest, OfAJobThatIsGoneBeforeItsWatchTellsSoNothingIsTold) {
  jobs_.push_back(MakeSuspendedJob());
  pods_.push_back(MakeEndedPod());
  Start({kRun});
  Set([this] { jobs_.clear(); });
  const agents::ObserveOutcome outcome = Observe(kRun);
  EXPECT_TRUE(outcome.scheduler.ok()) << outcome.scheduler;
  EXPECT_TRUE(outcome.observations.empty());
}

TEST_F(BackendObserveTest, WhyARunWasGivenUpIsNotForgottenForAPodThatRunsWhileItIsDeleted) {
  Json job = MakeJob(kRun);
  Json pod = MakeEndedPod();
  pod["status"] = Json::parse(R"({"phase": "Pending", "containerStatuses": [
      {"name": "main", "state": {"waiting": {"reason": "InvalidImageName"}}}]})");
  jobs_.push_back(job);
  pods_.push_back(pod);
  Start({kRun});
  EXPECT_THAT(See().reason.message(), HasSubstr("it cannot go on"));
  // Only the server itself knows of the deletion yet.
  Set([&] { pods_[0]["status"] = {{"phase", "Running"}}; });
  job["metadata"]["deletionTimestamp"] = "2026-01-01T00:02:00Z";
  AnswerWith(job);
  Start({kRun});
  EXPECT_TRUE(Observe(kRun).observations.empty());
  Set([this] {
    answer_first_ = nullptr;
    jobs_.clear();
    pods_.clear();
  });
  Start({kRun});
  const agents::Observation end = See();
  EXPECT_EQ(end.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(end.failure.has_value());
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_IMAGE);
}

TEST_F(BackendObserveTest, AJobThatTheServerItselfCallsSuspendedInTheMidstOfItsWorkEnds) {
  jobs_.push_back(MakeSuspendedJob());
  Json pod = MakeEndedPod();
  pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:30Z";
  pods_.push_back(pod);
  AnswerWith(MakeSuspendedJob());
  Start({kRun});
  EXPECT_THAT(See().reason.message(),
              HasSubstr("it cannot go on, and is being taken away: The run was suspended"));
}

}  // namespace
}  // namespace muster::kubernetes
