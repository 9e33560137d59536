#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/refusals.h"
#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class DeleteJobsTest : public CoreTest {
 protected:
  uint64_t Ended() {
    const uint64_t id = MustSubmit(Spec());
    EXPECT_TRUE(Cancel({id}).ok());
    return id;
  }
  void Delete(std::vector<uint64_t> jobs) { Do(DeleteJobs{.ticket = 1, .jobs = std::move(jobs)}); }
  // Edits the job as a user who has seen it as it was.
  absl::Status EditAsSeen(const v1::Job& job) {
    Do(Edit{.ticket = 2,
            .job = job.id(),
            .job_sequence = job.job_sequence(),
            .state = job.state(),
            .labels = {{"team", "vision"}}});
    for (const Effect& effect : last_.effects) {
      if (const auto* reply = std::get_if<StatusReply>(&effect))
        return contract::ToStatus(reply->refusal);
    }
    return absl::InternalError("no reply");
  }
};

TEST_F(DeleteJobsTest, AnEndedJobGoesAndItsNumberIsNeverUsedAgain) {
  const uint64_t id = Ended();
  Delete({id});
  EXPECT_EQ(ReasonOf(store_.GetJob(store::Scope::All(), id).status()), "JOB_DELETED");
  Restart();
  EXPECT_EQ(MustSubmit(Spec()), id + 1);
  EXPECT_EQ(ReasonOf(store_.GetJob(store::Scope::All(), id + 2).status()), "UNKNOWN_JOB");
}

TEST_F(DeleteJobsTest, AJobThatHasNotEndedOrNeverWasStays) {
  const uint64_t id = MustSubmit(Spec());
  Delete({id, 0, id + 1});
  EXPECT_EQ(CountChanges<DeleteJob>(), 0);
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_QUEUED);
}

TEST_F(DeleteJobsTest, AnEditThatWasDecidedBeforeComesToNothing) {
  const uint64_t id = Ended();
  const v1::Job seen = Job(id);
  Delete({id});
  EXPECT_EQ(ReasonOf(EditAsSeen(seen)), "JOB_CHANGED");
  EXPECT_THAT(last_.changes, IsEmpty());
}

TEST_F(DeleteJobsTest, AJobNamedTwiceIsDeletedOnce) {
  const uint64_t id = Ended();
  Delete({id, id});
  Delete({id});
  EXPECT_EQ(ReasonOf(store_.GetJob(store::Scope::All(), id).status()), "JOB_DELETED");
  EXPECT_THAT(History(id), SizeIs(0));
}

}  // namespace
}  // namespace muster::core
