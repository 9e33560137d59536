// A disk that is full before, at, and because of a run. Needs the right to mount a small tmpfs.
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>

#include "agents/hosts/local_host.h"
#include "tests/unit/machines/backend_fixture.h"

namespace muster::machines {
namespace {

using ::testing::HasSubstr;

class FullDiskTest : public BackendTest {
 protected:
  void SetUp() override {
    if (mount("tmpfs", dir_.path().c_str(), "tmpfs", 0, "size=256k") != 0) {
      FAIL() << "cannot mount a tmpfs here";
    }
    mounted_ = true;
    StartBackend();
  }
  void TearDown() override {
    StopBackend();
    if (mounted_) umount2(dir_.path().c_str(), MNT_DETACH);
  }
  void Fill() {
    hosts::LocalHost host;
    ASSERT_TRUE(host.Run({.argv = {"sh", "-c",
                                   "cat /dev/zero > " + (dir_ / "filler") + " 2>/dev/null; true"}})
                    .ok());
  }
  bool mounted_ = false;
};

TEST_F(FullDiskTest, ALaunchIsRefusedInTheSystemsWordsAndLeavesNothing) {
  Fill();
  const agents::LaunchOutcome outcome = Launch(RunKeyOf(1), Program({"true"}));
  EXPECT_EQ(outcome.kind, agents::LaunchOutcome::Kind::kRefused);
  EXPECT_EQ(outcome.failure.failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_THAT(outcome.failure.message(), HasSubstr("No space left on device"));
  EXPECT_THAT(outcome.failure.message(), HasSubstr(dir_.path()));
  EXPECT_FALSE(Exists(RunDir(RunKeyOf(1))));
}

TEST_F(FullDiskTest, AQueuedRunWaitsUntilThereIsSpaceAgain) {
  const std::string gate = Gate("gate");
  v1::JobSpec block = Script("cat " + gate);
  block.mutable_resources()->set_cpu_millis(2000);
  const std::string blocker = Submit(block);
  const std::string run_key = Submit(Program({"true"}));
  AwaitState(blocker, v1::RUN_STATE_RUNNING);
  Fill();
  Open(gate);
  EXPECT_EQ(AwaitEnd(blocker).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(AwaitReason(run_key, "No space left on device").state, v1::RUN_STATE_PENDING);
  std::filesystem::remove(dir_ / "filler");
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
}

TEST_F(FullDiskTest, ARunThatFillsTheDiskStillSaysHowItEnded) {
  const agents::Observation end = RunToEnd(Script("cat /dev/zero; exit 9"));
  EXPECT_EQ(end.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(end.exit->code(), 9);
}

}  // namespace
}  // namespace muster::machines
