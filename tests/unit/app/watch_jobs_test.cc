#include "broker/app/watch_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "broker/app/change_jobs.h"
#include "contract/errors.h"
#include "tests/unit/app/app_fixture.h"

namespace muster::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class WatchJobsTest : public AppTest {
 protected:
  void TearDown() override {
    if (source_) source_->Unhook();
    source_.reset();
    AppTest::TearDown();
  }

  void Watch(const v1::WatchJobsRequest& request) {
    auto source = WatchJobs(alice_, services_, request);
    ASSERT_TRUE(source.ok()) << source.status();
    source_ = *std::move(source);
    source_->Hook(stream_);
  }

  // Takes what there is.
  void Pull() {
    auto pulled = PullAll(*source_);
    final_status_ = pulled.final_status;
    for (const ChangeBytes& bytes : pulled.messages) {
      v1::WatchJobsResponse message;
      EXPECT_TRUE(message.ParseFromString(*bytes));
      if (message.has_heartbeat()) {
        ++heartbeats_;
      } else {
        sizes_.push_back(bytes->size());
      }
      for (const v1::JobChange& change : message.changes()) changed_.push_back(change.job().id());
    }
  }

  // Waits until all changes so far are there to be taken.
  void AwaitTail() {
    while (services_.changes->last() < *store_.LastSequence()) stream_->AwaitWake();
  }

  // Returns the jobs of the next changes, in order. Changes may come some time after their answers.
  std::vector<uint64_t> NextChanges(size_t count) {
    for (Pull(); changed_.size() < count && !final_status_; Pull()) stream_->AwaitWake();
    return std::exchange(changed_, {});
  }

  // Watches from this sequence on.
  static v1::WatchJobsRequest After(uint64_t sequence) {
    v1::WatchJobsRequest request;
    request.set_after(sequence);
    return request;
  }

  void Cancel(uint64_t job) {
    const auto answer = Await<ChangedJobs>([&](ChangeDone done) {
      ChangeJobs(alice_, services_, {.change = JobChange::kCancel, .jobs = {job}}, std::move(done));
    });
    ASSERT_TRUE(answer.ok()) << answer.status();
  }

  std::shared_ptr<FakeStream> stream_ = std::make_shared<FakeStream>();
  std::unique_ptr<WatchSource> source_;
  std::optional<absl::Status> final_status_;
  std::vector<uint64_t> changed_;
  std::vector<size_t> sizes_;  // of messages with changes, in bytes
  int heartbeats_ = 0;
};

TEST_F(WatchJobsTest, FromTheBeginningEveryChangeComesAfterAHeartbeat) {
  SubmitJobs(2);
  v1::WatchJobsRequest request;
  request.mutable_beginning();
  Watch(request);
  EXPECT_THAT(NextChanges(2), ElementsAre(1, 2));
  EXPECT_EQ(heartbeats_, 1);
  EXPECT_FALSE(final_status_.has_value());
  EXPECT_TRUE(source_->KeepAlive().has_value());
}

TEST_F(WatchJobsTest, ChangesThatHaveComeMeanwhileAreOneMessage) {
  Watch(After(*store_.LastSequence()));
  Pull();
  SubmitJobs(100);
  AwaitTail();
  Pull();
  EXPECT_EQ(changed_.size(), 100u);
  EXPECT_EQ(sizes_.size(), 1u);
}

TEST_F(WatchJobsTest, ChangesThatOnlyTheStoreHasAreOneMessage) {
  SubmitJobs(100);
  Watch(After(0));
  EXPECT_EQ(NextChanges(100).size(), 100u);
  EXPECT_EQ(sizes_.size(), 1u);
}

TEST_F(WatchJobsTest, AMessageHasNoMoreThan64KiBOfChanges) {
  constexpr int kJobs = 1000;
  SubmitJobs(kJobs);
  Watch(After(0));
  EXPECT_EQ(NextChanges(kJobs).size(), static_cast<size_t>(kJobs));
  EXPECT_GT(std::accumulate(sizes_.begin(), sizes_.end(), size_t{0}), size_t{64} << 10);
  EXPECT_LE(*std::max_element(sizes_.begin(), sizes_.end()), size_t{64} << 10);
}

TEST_F(WatchJobsTest, ABacklogInMemoryComesInMessagesThatAreFull) {
  Watch(After(*store_.LastSequence()));
  Pull();
  SubmitJobs(1000);
  AwaitTail();
  Pull();
  EXPECT_EQ(changed_.size(), 1000u);
  ASSERT_GT(sizes_.size(), 1u);
  const size_t last = sizes_.back();
  sizes_.pop_back();
  for (const size_t size : sizes_) {
    EXPECT_LE(size, size_t{64} << 10);
    EXPECT_GT(size, size_t{32} << 10);
  }
  EXPECT_LE(last, size_t{64} << 10);
}

TEST_F(WatchJobsTest, AChangeOfMoreThan64KiBComesAlone) {
  Watch(After(*store_.LastSequence()));
  Pull();
  SubmitJobs(1);
  SubmitJobs(1, /*request_id=*/"", /*name=*/std::string(100'000, 'n'));
  SubmitJobs(1);
  AwaitTail();
  Pull();
  EXPECT_THAT(changed_, ElementsAre(1, 2, 3));
  ASSERT_EQ(sizes_.size(), 3u);
  EXPECT_GT(sizes_[1], size_t{64} << 10);
}

TEST_F(WatchJobsTest, AChangeWakesTheStream) {
  SubmitJobs(1);
  Watch(After(*store_.LastSequence()));
  Pull();
  EXPECT_THAT(changed_, IsEmpty());
  SubmitJobs(1);
  stream_->AwaitWake();
  EXPECT_THAT(NextChanges(1), ElementsAre(2));
}

TEST_F(WatchJobsTest, AFilterIsJudgedAtEachStep) {
  SubmitJobs(2);
  v1::WatchJobsRequest request = After(*store_.LastSequence());
  request.set_filter("id = 2 AND state = QUEUED");
  Watch(request);
  Cancel(1);
  Cancel(2);
  EXPECT_THAT(NextChanges(1), ElementsAre(2)) << "it was QUEUED before the step";
}

TEST_F(WatchJobsTest, TheStreamEndsWithTheLastOfItsJobs) {
  SubmitJobs(2);
  v1::WatchJobsRequest request = After(*store_.LastSequence());
  request.add_job_ids(2);
  request.set_until_terminal(true);
  Watch(request);
  Pull();
  EXPECT_FALSE(final_status_.has_value());
  Cancel(2);
  EXPECT_THAT(NextChanges(100), ElementsAre(2));
  ASSERT_TRUE(final_status_.has_value());
  EXPECT_TRUE(final_status_->ok()) << *final_status_;
}

TEST_F(WatchJobsTest, AnEndThatOnlyTheStoreHasIsGivenBeforeTheStreamEnds) {
  SubmitJobs(1);
  const uint64_t submitted = *store_.LastSequence();
  v1::WatchJobsRequest request = After(submitted);
  request.add_job_ids(1);
  request.set_until_terminal(true);
  Watch(request);
  // Committed, and not in the tail yet.
  core::UpdateJob update;
  update.id = 1;
  update.state = v1::JOB_STATE_CANCELED;
  update.job_sequence = 2;
  core::AppendTransition end{1, {}};
  end.transition.set_sequence(submitted + 1);
  end.transition.set_job_sequence(2);
  end.transition.set_job_state(v1::JOB_STATE_CANCELED);
  ASSERT_TRUE(store_.Commit(std::vector<core::Change>{end, update}).ok());
  Pull();
  EXPECT_THAT(changed_, ElementsAre(1));
  ASSERT_TRUE(final_status_.has_value()) << "it waits for a wake that nobody gives";
  EXPECT_TRUE(final_status_->ok()) << *final_status_;
}

TEST_F(WatchJobsTest, AJobThatIsNotThereEndsTheStream) {
  v1::WatchJobsRequest request;
  request.add_job_ids(7);
  Watch(request);
  Pull();
  ASSERT_TRUE(final_status_.has_value());
  EXPECT_EQ(contract::GetErrorInfo(*final_status_)->reason(), "UNKNOWN_JOB");
}

TEST_F(WatchJobsTest, ABadRequestAndAStrangerAreRefused) {
  v1::WatchJobsRequest request;
  request.set_until_terminal(true);
  EXPECT_TRUE(absl::IsInvalidArgument(WatchJobs(alice_, services_, request).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(WatchJobs(stranger_, services_, {}).status()));
}

}  // namespace
}  // namespace muster::broker
