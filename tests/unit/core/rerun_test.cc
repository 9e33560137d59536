// Submits of RerunJobs: one request_id for all their jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/core/rerun_id.h"
#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RerunTest : public CoreTest {
 protected:
  absl::StatusOr<v1::SubmitJobsResponse> Rerun(const std::vector<uint64_t>& sources,
                                               Fingerprint fingerprint = 1) {
    core::Submit submit;
    submit.ticket = 5;
    submit.user = "bob";
    submit.rerun = RerunRequest{"again", fingerprint};
    for (const uint64_t source : sources) {
      SubmitItem& item = submit.items.emplace_back();
      item.spec = std::make_shared<const v1::JobSpec>(Spec());
      item.rerun_of = source;
    }
    Do(submit);
    for (Effect& effect : last_.effects) {
      if (auto* reply = std::get_if<SubmitReply>(&effect)) return ResultOf(*reply);
    }
    return absl::InternalError("no reply");
  }

  std::vector<uint64_t> JobsOf(uint64_t first) {
    std::vector<uint64_t> ids;
    const auto jobs = store_.GetJobsOfRequest(store::Scope::All(), first, "again");
    for (const v1::Job& job : *jobs) ids.push_back(job.id());
    return ids;
  }
};

TEST_F(RerunTest, NewJobsKnowWhoseSpecTheyHave) {
  const uint64_t source = MustSubmit(Spec());
  const auto response = Rerun({source});
  ASSERT_TRUE(response.ok()) << response.status();
  const uint64_t id = response->responses(0).job_id();
  EXPECT_EQ(Job(id).rerun_of(), source);
  EXPECT_THAT(History(id)[0].evidence().detail(), HasSubstr("with the spec of job 1"));
}

TEST_F(RerunTest, ARepeatIsAnsweredWithTheFirstJobAndMakesNone) {
  const uint64_t a = MustSubmit(Spec()), b = MustSubmit(Spec());
  const auto first = Rerun({a, b});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(first->responses(0).repeated_request());
  const uint64_t id = first->responses(0).job_id();
  MustSubmit(Spec());
  for (const std::vector<uint64_t>& sources : {std::vector<uint64_t>{a, b}, {a}, {}}) {
    const auto repeat = Rerun(sources);
    ASSERT_TRUE(repeat.ok()) << repeat.status();
    EXPECT_TRUE(repeat->responses(0).repeated_request());
    EXPECT_EQ(repeat->responses(0).job_id(), id);
    EXPECT_EQ(CountChanges<InsertJob>(), 0);
  }
  EXPECT_THAT(JobsOf(id), ElementsAre(id, id + 1));
}

TEST_F(RerunTest, ARestartRemembersIt) {
  const uint64_t a = MustSubmit(Spec()), b = MustSubmit(Spec());
  const uint64_t id = Rerun({a, b})->responses(0).job_id();
  Restart();
  EXPECT_EQ(Rerun({})->responses(0).job_id(), id);
  EXPECT_TRUE(Cancel({id, id + 1}).ok());
  Restart();
  EXPECT_EQ(Rerun({})->responses(0).job_id(), id);
}

TEST_F(RerunTest, AnotherRequestUnderTheSameIdIsRefused) {
  const uint64_t a = MustSubmit(Spec());
  ASSERT_TRUE(Rerun({a}).ok());
  EXPECT_EQ(ReasonOf(Rerun({a}, 2).status()), "REQUEST_ID_REUSED");
}

TEST_F(RerunTest, ASubmitMayHaveTheSameRequestId) {
  const uint64_t a = MustSubmit(Spec());
  const auto submitted = SubmitOne(Spec(), "again");
  ASSERT_TRUE(submitted.ok());
  EXPECT_NE(Rerun({a})->responses(0).job_id(), *submitted);
}

TEST_F(RerunTest, AQuestionForAnUnknownOneMakesNothing) {
  const auto answer = Rerun({});
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->responses(), IsEmpty());
}

}  // namespace
}  // namespace muster::core
