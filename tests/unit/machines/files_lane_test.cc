// Turns of runs that bring files along.
#include "agents/machines/files_lane.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::machines {
namespace {

using ::testing::HasSubstr;

// Work whose turns go as the test says, and the news of it.
class FilesLaneTest : public ::testing::Test {
 protected:
  FilesLaneTest() {
    lane_.emplace(
        [this](FilesLane::Task* task, const FilesLane::Turn& turn) { return Do(task, turn); },
        [this](FilesNews news) {
          const std::lock_guard lock(mutex_);
          news_.push_back(std::move(news));
          changed_.notify_all();
        });
  }

  absl::Status Do(FilesLane::Task* task, const FilesLane::Turn& turn) {
    std::unique_lock lock(mutex_);
    const bool is_here = !absent_.contains(task->run_key) && !results_.contains(task->run_key);
    if (turn.patience() == kNoPatience && !is_here) return absl::UnavailableError("not here");
    begun_.push_back(task->run_key);
    changed_.notify_all();
    changed_.wait(lock, [&] { return !hangs_ || task->run_key != hanging_; });
    const auto result = results_.extract(task->run_key);
    const absl::Status status = result.empty() ? absl::OkStatus() : result.mapped();
    lock.unlock();
    if (!status.ok()) return status;
    return turn.Conclude([&] {
      const std::lock_guard concluding(mutex_);
      concluded_.push_back(task->run_key);
      return absl::OkStatus();
    });
  }
  void Hang(const std::string& run_key) {
    const std::lock_guard lock(mutex_);
    hangs_ = !run_key.empty();
    hanging_ = run_key;
    changed_.notify_all();
  }
  void Answer(const std::string& run_key, absl::Status status) {
    const std::lock_guard lock(mutex_);
    results_[run_key] = std::move(status);
  }
  uint64_t Add(const std::string& run_key) { return lane_->Add(run_key, {}, false); }
  void AwaitBegin(const std::string& run_key, int times = 1) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return std::count(begun_.begin(), begun_.end(), run_key) >= times; });
  }
  FilesNews NextNews() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !news_.empty(); });
    FilesNews first = std::move(news_.front());
    news_.pop_front();
    return first;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool hangs_ = false;
  std::string hanging_;
  std::set<std::string> absent_;  // which the broker has to be asked for
  std::vector<std::string> begun_;
  std::vector<std::string> concluded_;
  std::map<std::string, absl::Status> results_;
  std::deque<FilesNews> news_;
  std::optional<FilesLane> lane_;  // last: it uses all the others
};

TEST_F(FilesLaneTest, OneThatHangsDoesNotKeepTheOthersFromTheirTurns) {
  Hang("a");
  const uint64_t a = Add("a");
  AwaitBegin("a");
  const uint64_t b = Add("b");
  const FilesNews first = NextNews();
  EXPECT_EQ(first.kind, FilesNews::Kind::kReady);
  EXPECT_EQ(first.ticket, b);
  Hang("");
  EXPECT_EQ(NextNews().ticket, a);
}

TEST_F(FilesLaneTest, OneWhoseFilesAreHereDoesNotWaitBehindThoseThatWaitForTheBroker) {
  absent_ = {"a", "b"};
  Hang("a");
  Add("a");
  Add("a");
  AwaitBegin("a", 2);
  const uint64_t b = Add("b");
  const uint64_t c = Add("c");
  EXPECT_EQ(NextNews().ticket, c);
  Hang("");
  std::set<uint64_t> others;
  for (int i = 0; i < 3; ++i) others.insert(NextNews().ticket);
  EXPECT_TRUE(others.contains(b));
}

TEST_F(FilesLaneTest, WhatComesAgainSaysWhyItWaitsAndIsTriedAgain) {
  Answer("a", absl::UnavailableError("the broker is away"));
  Answer("b", absl::ResourceExhaustedError("no room"));
  Add("a");
  const FilesNews away = NextNews();
  EXPECT_EQ(away.kind, FilesNews::Kind::kWaits);
  EXPECT_THAT(away.reason.message(), HasSubstr("the broker is away"));
  Add("b");
  EXPECT_THAT(NextNews().reason.message(), HasSubstr("no room"));
  EXPECT_EQ(NextNews().kind, FilesNews::Kind::kReady);
  EXPECT_EQ(NextNews().kind, FilesNews::Kind::kReady);
}

TEST_F(FilesLaneTest, WhatNeverComesIsSaidOnceWithItsClass) {
  Answer("a", absl::NotFoundError("the broker does not have it"));
  Add("a");
  const FilesNews news = NextNews();
  EXPECT_EQ(news.kind, FilesNews::Kind::kFailed);
  EXPECT_EQ(news.failure.failure_class(), v1::FAILURE_CLASS_CONFIG);
}

TEST_F(FilesLaneTest, WhatIsDroppedInItsTurnIsPutNowhereAndNotToldOf) {
  Hang("a");
  const uint64_t a = Add("a");
  AwaitBegin("a");
  lane_->Drop(a);
  Hang("");
  // The same run comes once more, and its news belong to the new ticket.
  const uint64_t again = Add("a");
  EXPECT_EQ(NextNews().ticket, again);
  lane_.reset();
  EXPECT_EQ(concluded_.size(), 1u);
  EXPECT_TRUE(news_.empty());
}

TEST_F(FilesLaneTest, WhatIsDroppedBeforeItsTurnHasNone) {
  // All threads are busy.
  Hang("a");
  for (int i = 0; i < 3; ++i) Add("a");
  AwaitBegin("a", 3);
  lane_->Drop(Add("b"));
  Hang("");
  for (int i = 0; i < 3; ++i) NextNews();
  lane_.reset();
  EXPECT_EQ(std::count(begun_.begin(), begun_.end(), "b"), 0);
}

}  // namespace
}  // namespace muster::machines
