// Reading files of several hosts together.
#include "agents/machines/remote/host_router.h"

#include <atomic>
#include <fstream>
#include <future>

#include "absl/time/clock.h"
#include "agents/hosts/local_host.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::machines {
namespace {

// Only a broken program takes so long.
constexpr absl::Duration kNever = absl::Minutes(10);

// Answers reads of several files once it is let go.
class SlowHost : public hosts::LocalHost {
 public:
  std::vector<absl::StatusOr<std::string>> ReadMany(
      const std::vector<hosts::FilePart>& parts) override {
    ++reads;
    gate_.wait();
    return LocalHost::ReadMany(parts);
  }
  void LetGo() { key_.set_value(); }

  std::atomic<int> reads = 0;

 private:
  std::promise<void> key_;
  std::shared_future<void> gate_ = key_.get_future().share();
};

class HostRouterTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& content) {
    std::ofstream(dir_ / name) << content;
  }

  hosts::TempDir dir_;
  hosts::LocalHost host_;
};

TEST_F(HostRouterTest, APathIsAskedOfTheHostThatOwnsTheDeepestDirectory) {
  Write("file", "content");
  HostRouter router(kNever);
  router.SetOwner(dir_.path(), "a");
  EXPECT_TRUE(absl::IsNotFound(router.Stat(dir_ / "file").status())) << "nobody knows the host";
  router.SetHost("a", nullptr);
  EXPECT_TRUE(absl::IsUnavailable(router.Stat(dir_ / "file").status())) << "it is not up";
  router.SetHost("a", std::make_shared<HostLane>(&host_));
  EXPECT_EQ(*router.ReadFile(dir_ / "file", 100), "content");
  EXPECT_TRUE(absl::IsUnavailable(router.Stat("/elsewhere").status()));
  router.SetHost("b", nullptr);
  router.SetOwner(dir_ / "file", "b");
  EXPECT_TRUE(absl::IsUnavailable(router.Stat(dir_ / "file").status())) << "b is not up";
}

TEST_F(HostRouterTest, EachKindOfReadIsAnsweredByTheHost) {
  Write("file", "content");
  HostRouter router(kNever);
  router.SetOwner(dir_.path(), "a");
  router.SetHost("a", std::make_shared<HostLane>(&host_));
  EXPECT_EQ(*router.ReadFileRange(dir_ / "file", 3, 2), "te");
  EXPECT_EQ(router.Stat(dir_ / "file")->size, 7);
  EXPECT_EQ(router.StatMany({dir_ / "file"})[0]->size, 7);
  EXPECT_THAT(*router.ListDirectory(dir_.path()), ::testing::ElementsAre("file"));
  EXPECT_EQ(router.Run({.argv = {"cat", dir_ / "file"}})->stdout_data, "content");
}

TEST_F(HostRouterTest, OneHostThatIsDownLeavesTheAnswersOfOthers) {
  Write("up", "content");
  HostRouter router(kNever);
  router.SetOwner(dir_ / "up", "a");
  router.SetOwner(dir_ / "down", "b");
  router.SetHost("a", std::make_shared<HostLane>(&host_));
  router.SetHost("b", nullptr);
  const auto answers = router.ReadMany({{dir_ / "down", 0, 10}, {dir_ / "up", 3, 10}});
  EXPECT_TRUE(absl::IsUnavailable(answers[0].status()));
  EXPECT_EQ(*answers[1], "tent");
}

// A host that hangs, and one that does not.
class SlowHostTest : public HostRouterTest {
 protected:
  SlowHostTest() {
    Write("fast", "content");
    Write("slow", "long content");
    router_.SetOwner(dir_ / "fast", "a");
    router_.SetOwner(dir_ / "slow", "b");
    router_.SetHost("a", std::make_shared<HostLane>(&host_));
    router_.SetHost("b", lane_);
  }
  ~SlowHostTest() override { lane_->Stop(); }

  std::vector<absl::StatusOr<std::string>> ReadBoth() {
    return router_.ReadMany({{dir_ / "slow", 0, 100}, {dir_ / "fast", 0, 100}});
  }

  SlowHost slow_;
  std::shared_ptr<HostLane> lane_ = std::make_shared<HostLane>(&slow_);
  HostRouter router_{absl::Milliseconds(50)};
};

TEST_F(SlowHostTest, AHostThatHangsIsGivenUpAndLeavesTheAnswersOfOthers) {
  const auto answers = ReadBoth();
  EXPECT_TRUE(absl::IsUnavailable(answers[0].status()));
  EXPECT_EQ(*answers[1], "content");
  slow_.LetGo();
}

TEST_F(SlowHostTest, AHostThatHangsIsAskedNothingElseMeanwhile) {
  ReadBoth();
  EXPECT_TRUE(absl::IsUnavailable(router_.Stat(dir_ / "slow").status()));
  EXPECT_TRUE(absl::IsUnavailable(router_.ReadMany({{dir_ / "slow", 7, 1}})[0].status()));
  EXPECT_EQ(slow_.reads, 1);
  slow_.LetGo();
}

TEST_F(SlowHostTest, AnAnswerThatComesLateIsThereWhenTheSameIsAskedAgain) {
  ReadBoth();
  slow_.LetGo();
  absl::StatusOr<std::string> answer = absl::UnavailableError("");
  const absl::Time until = absl::Now() + absl::Minutes(1);
  while (!answer.ok() && absl::Now() < until) answer = ReadBoth()[0];
  EXPECT_EQ(*answer, "long content");
  EXPECT_EQ(slow_.reads, 1) << "the host has read it once";
}

TEST_F(SlowHostTest, AHostThatAnswersAgainIsAskedOtherThings) {
  ReadBoth();
  slow_.LetGo();
  absl::StatusOr<hosts::FileInfo> info = absl::UnavailableError("");
  const absl::Time until = absl::Now() + absl::Minutes(1);
  while (!info.ok() && absl::Now() < until) info = router_.Stat(dir_ / "slow");
  EXPECT_EQ(info->size, 12);
}

}  // namespace
}  // namespace muster::machines
