// Tests quotas: no commit exceeds one, and whoever waits for one keeps nobody else waiting.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "contract/errors.h"
#include "contract/project_shares.h"
#include "contract/quota_reached.h"
#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class QuotasTest : public CoreTest {
 protected:
  static v1::JobSpec SpecOf(const std::string& project, int gpus = 0) {
    v1::JobSpec spec = gpus > 0 ? SpecWithGpus("H100", gpus) : Spec();
    spec.set_project(project);
    return spec;
  }
  uint64_t SubmitAs(const std::string& user, const v1::JobSpec& spec) {
    user_ = user;
    return MustSubmit(spec);
  }
  SessionId ConnectWithGpus() {
    agent::v1::AgentHello hello = Hello("a");
    *hello.mutable_inventory()->mutable_pools(0) = PoolOf("default", {.gpus = {{"h100", 8}}});
    return Connect(hello);
  }
  void QuotaOf(const std::string& project, const contract::Quota& quota,
               const contract::Quota& user_quota = {}) {
    contract::ProjectShares shares = shares_;
    shares.are_on = true;
    shares.projects[project].quota = quota;
    shares.projects[project].user_quota = user_quota;
    Share(std::move(shares));
  }
  static contract::Quota Active(uint32_t most) {
    contract::Quota quota;
    quota.max_active_runs = most;
    return quota;
  }
  static contract::Quota Queued(uint32_t most) {
    contract::Quota quota;
    quota.max_queued_jobs = most;
    return quota;
  }
  static contract::Quota Gpus(const std::string& type, uint64_t most) {
    contract::Quota quota;
    quota.max_gpu_millis[type] = 1000 * most;
    return quota;
  }
  void End(SessionId session, uint64_t job) {
    Report(session, {Event(++reported_, Key(job), v1::RUN_STATE_FAILED)});
  }

  uint64_t reported_ = 0;
};

TEST_F(QuotasTest, ASubmitBeyondTheQueuedJobsIsRefusedWithItsNumbers) {
  QuotaOf("vision", Queued(2));
  MustSubmit(SpecOf("vision"));
  const SubmitItem item{.spec = std::make_shared<v1::JobSpec>(SpecOf("vision")), .request_id = ""};
  const absl::Status refused = Submit({item, item}).result.status();
  EXPECT_EQ(ReasonOf(refused), "QUOTA_REACHED");
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("the quota of queued jobs of project vision is 2: 1 are queued, and the "
                        "request has 2 more"));
  EXPECT_EQ(contract::GetErrorInfo(refused)->metadata().at("max"), "2");
  MustSubmit(SpecOf("vision"));
  MustSubmit(SpecOf("speech"));
  // A job that a cluster has is not queued any more.
  Connect("a");
  MustSubmit(SpecOf("vision"));
}

TEST_F(QuotasTest, AQuotaOfEachUserLeavesTheOthersAlone) {
  QuotaOf("vision", {}, Queued(1));
  SubmitAs("ada", SpecOf("vision"));
  const absl::Status refused = SubmitOne(SpecOf("vision")).status();
  EXPECT_THAT(std::string(refused.message()), HasSubstr("of user ada in project vision"));
  SubmitAs("bob", SpecOf("vision"));
}

TEST_F(QuotasTest, AJobWaitsForTheActiveRunsOfItsProjectAndKeepsNobodyElseWaiting) {
  QuotaOf("vision", Active(1));
  const SessionId a = Connect("a");
  const uint64_t first = MustSubmit(SpecOf("vision"));
  EXPECT_THAT(Assigned(a), ElementsAre(Key(first)));
  const uint64_t second = MustSubmit(SpecOf("vision"));
  EXPECT_THAT(Assigned(a), IsEmpty());
  const uint64_t other = MustSubmit(SpecOf("speech"));
  EXPECT_THAT(Assigned(a), ElementsAre(Key(other)));
  End(a, first);
  EXPECT_THAT(Assigned(a), ElementsAre(Key(second)));
}

TEST_F(QuotasTest, AUserOverTheQuotaKeepsNoOtherUserOfTheProjectWaiting) {
  QuotaOf("vision", {}, Active(1));
  const SessionId a = Connect("a");
  const uint64_t first = SubmitAs("ada", SpecOf("vision"));
  const uint64_t second = SubmitAs("ada", SpecOf("vision"));
  EXPECT_EQ(Job(second).state(), v1::JOB_STATE_QUEUED);
  const uint64_t of_bob = SubmitAs("bob", SpecOf("vision"));
  EXPECT_THAT(Assigned(a), ElementsAre(Key(of_bob)));
  End(a, of_bob);
  EXPECT_THAT(Assigned(a), IsEmpty()) << "it was not ada's";
  End(a, first);
  EXPECT_THAT(Assigned(a), ElementsAre(Key(second)));
}

TEST_F(QuotasTest, GpusAreCountedByTypeInAnyCaseAndOverAllNodes) {
  QuotaOf("vision", Gpus("h100", 6));
  const SessionId a = ConnectWithGpus();
  const uint64_t four = MustSubmit(SpecOf("vision", 4));
  EXPECT_THAT(Assigned(a), ElementsAre(Key(four)));
  v1::JobSpec two_nodes = SpecOf("vision", 2);
  two_nodes.set_nodes(2);
  const uint64_t waits = MustSubmit(two_nodes);
  EXPECT_THAT(Assigned(a), IsEmpty()) << "it needs 4";
  EXPECT_THAT(Assigned(a), IsEmpty());
  const uint64_t fits = MustSubmit(SpecOf("vision", 2));
  EXPECT_THAT(Assigned(a), ElementsAre(Key(fits)));
  const uint64_t none = MustSubmit(SpecOf("vision"));
  EXPECT_THAT(Assigned(a), ElementsAre(Key(none)));
  End(a, four);
  EXPECT_THAT(Assigned(a), ElementsAre(Key(waits)));
}

TEST_F(QuotasTest, AllTypesCountTogetherInTheQuotaWithoutAType) {
  QuotaOf("vision", Gpus("", 4));
  const SessionId a = ConnectWithGpus();
  v1::JobSpec any = SpecOf("vision", 3);
  any.mutable_resources()->mutable_gpus(0)->clear_type();
  MustSubmit(any);
  EXPECT_THAT(Assigned(a), SizeIs(1));
  MustSubmit(SpecOf("vision", 2));
  EXPECT_THAT(Assigned(a), IsEmpty());
  MustSubmit(SpecOf("vision", 1));
  EXPECT_THAT(Assigned(a), SizeIs(1));
}

TEST_F(QuotasTest, AJobThatIsLargerThanItsQuotaIsRefused) {
  QuotaOf("vision", Gpus("h100", 4), Gpus("", 2));
  ConnectWithGpus();
  const absl::Status refused = SubmitOne(SpecOf("vision", 5)).status();
  EXPECT_EQ(ReasonOf(refused), "BEYOND_QUOTA");
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("needs 5 GPUs at the same time, and the quota of gpus of type h100 of "
                        "project vision is 4"));
  EXPECT_THAT(std::string(SubmitOne(SpecOf("vision", 3)).status().message()),
              HasSubstr("of gpus of user alice in project vision is 2"));
  MustSubmit(SpecOf("vision", 2));
}

TEST_F(QuotasTest, AQuotaThatIsLoweredLeavesRunsAndStartsNone) {
  QuotaOf("vision", Active(3));
  const SessionId a = Connect("a");
  const uint64_t first = MustSubmit(SpecOf("vision"));
  const uint64_t second = MustSubmit(SpecOf("vision"));
  QuotaOf("vision", Active(1));
  const uint64_t waits = MustSubmit(SpecOf("vision"));
  End(a, first);
  EXPECT_THAT(Assigned(a), IsEmpty());
  End(a, second);
  EXPECT_THAT(Assigned(a), ElementsAre(Key(waits)));
  MustSubmit(SpecOf("vision"));
  EXPECT_THAT(Assigned(a), IsEmpty());
  QuotaOf("vision", Active(2));
  EXPECT_THAT(Assigned(a), SizeIs(1)) << "a quota that is raised lets jobs go at once";
}

TEST_F(QuotasTest, ARestartedBrokerKnowsWhatProjectsAndUsersHave) {
  QuotaOf("vision", Gpus("h100", 4), Active(2));
  ConnectWithGpus();
  SubmitAs("ada", SpecOf("vision", 4));
  SubmitAs("ada", SpecOf("vision"));
  const uint64_t over_active = SubmitAs("ada", SpecOf("vision"));
  const uint64_t over_gpus = SubmitAs("bob", SpecOf("vision", 1));
  Restart();
  ConnectWithGpus();
  EXPECT_EQ(Job(over_active).state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(Job(over_gpus).state(), v1::JOB_STATE_QUEUED);
  const uint64_t free = SubmitAs("bob", SpecOf("vision"));
  EXPECT_EQ(Job(free).state(), v1::JOB_STATE_PENDING);
}

TEST_F(QuotasTest, OneUserMayHaveOnlySoManyQueuedJobsWhereBoundsHold) {
  options_.max_queued_jobs_per_user = 2;
  Restart();
  const auto submit = [&](const std::string& user, bool is_bounded) {
    core::Submit in;
    in.ticket = 1000;
    in.items.push_back({.spec = std::make_shared<v1::JobSpec>(Spec()), .request_id = ""});
    in.user = user;
    in.is_bounded = is_bounded;
    Do(std::move(in));
    for (const Effect& effect : last_.effects) {
      if (const auto* reply = std::get_if<SubmitReply>(&effect))
        return ReasonOf(ResultOf(*reply).status());
    }
    return std::string("no reply");
  };
  EXPECT_EQ(submit("ada", true), "");
  EXPECT_EQ(submit("ada", true), "");
  EXPECT_EQ(submit("ada", true), "TOO_MANY_QUEUED_JOBS_OF_USER");
  EXPECT_EQ(submit("ada", false), "");
  EXPECT_EQ(submit("bob", true), "");
  Restart();
  EXPECT_EQ(submit("ada", true), "TOO_MANY_QUEUED_JOBS_OF_USER");
  Connect("a");
  EXPECT_EQ(submit("ada", true), "");
}

TEST_F(QuotasTest, TheReasonOfAJobThatWaitsSaysWhatIsInUse) {
  contract::ProjectShare share;
  share.quota = Gpus("h100", 8);
  UseView view;
  view.jobs.gpu_millis["h100"] = 6500;
  const auto reached =
      WhyOverQuota(RequirementsOf(SpecOf("vision", 2)), "ada", share, &view, nullptr);
  ASSERT_TRUE(reached.has_value());
  const v1::StateReason reason = contract::QuotaReason(*reached);
  EXPECT_EQ(reason.code(), v1::STATE_REASON_CODE_QUOTA_REACHED);
  EXPECT_EQ(reason.subject(), "gpus of type h100 of project vision");
  EXPECT_EQ(reason.message(),
            "the quota of gpus of type h100 of project vision is reached: 6.5 of 8 in use, the job "
            "needs 2");
  EXPECT_THAT(reason.remedy(), HasSubstr("muster project set vision --quota"));
  EXPECT_FALSE(WhyOverQuota(RequirementsOf(SpecOf("vision", 1)), "ada", share, &view, nullptr));
}

}  // namespace
}  // namespace muster::core
