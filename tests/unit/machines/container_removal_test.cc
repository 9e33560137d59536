// Removing what is left of containers whose supervisors are gone.
#include "agents/machines/container_removal.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "agents/hosts/local_host.h"
#include "agents/machines/clock_now.h"
#include "agents/machines/run_files.h"
#include "gtest/gtest.h"
#include "tests/unit/hosts/temp_dir.h"
#include "tests/unit/machines/backend_fixture.h"

namespace muster::machines {
namespace {

RemovalPatience Patience(absl::Duration duration) {
  return {.until_ms = SteadyMilliseconds() + absl::ToInt64Milliseconds(duration)};
}

TEST(RunBookkeeping, WhatAToolMadeOfAnImageGoesWithIt) {
  const hosts::TempDir dir;
  for (const char* name : {"image.sif", "image.sqsh", "oom", "stdout"})
    std::ofstream(dir / name) << "x";
  RemoveRunBookkeeping(dir.path());
  EXPECT_FALSE(Exists(dir / "image.sif"));
  EXPECT_FALSE(Exists(dir / "image.sqsh"));
  EXPECT_FALSE(Exists(dir / "oom"));
  EXPECT_TRUE(Exists(dir / "stdout"));
}

TEST(RunBookkeeping, RecordsThatWereNeverFinishedGoWithItAndNoFileOfTheUsers) {
  const hosts::TempDir dir;
  const std::string run = dir / "k-1-1";
  std::filesystem::create_directory(run);
  for (const char* name : {"spec.1.2.tmp", "claim.1.2.tmp", "started.1.2.tmp", "exit.1.tmp"})
    std::ofstream(run + "/" + name) << "x";
  std::ofstream(run + "/mine.1.2.tmp") << "x";
  RemoveRunBookkeeping(run);
  RemoveRunLogs(run);
  EXPECT_TRUE(Exists(run + "/mine.1.2.tmp"));
  std::filesystem::remove(run + "/mine.1.2.tmp");
  EXPECT_TRUE(std::filesystem::is_empty(run));
}

// A docker that fails to remove anything, as its older versions do what is not there.
class RemoveContainersTest : public ::testing::Test {
 protected:
  // `listing` is what it does to list containers.
  void SetUpTool(const std::string& listing) {
    hosts::LocalHost host;
    ASSERT_TRUE(host.WriteFile(dir_ / "docker",
                               "#!/bin/sh\ntest \"$1\" != rm || exit 1\n" + listing + "\n",
                               {.mode = 0755})
                    .ok());
    old_path_ = getenv("PATH");
    setenv("PATH", (dir_.path() + ":" + old_path_).c_str(), 1);
    std::filesystem::create_directories(run_);
    std::ofstream(run_ + "/containers") << "docker muster-k-1-1.7\n";
  }
  void TearDown() override { setenv("PATH", old_path_.c_str(), 1); }

  hosts::TempDir dir_;
  std::string run_ = dir_ / "k-1-1";
  std::string old_path_;
};

TEST_F(RemoveContainersTest, OneThatWasNeverMadeIsGone) {
  SetUpTool("echo muster-k-1-1.70");
  EXPECT_TRUE(RemoveContainersOf(run_, Patience(kPatience)));
  EXPECT_FALSE(MayHaveContainers(run_));
}

TEST_F(RemoveContainersTest, OneThatIsStillListedIsNot) {
  SetUpTool("echo muster-k-1-1.7");
  EXPECT_FALSE(RemoveContainersOf(run_, Patience(kPatience)));
  EXPECT_TRUE(MayHaveContainers(run_));
}

TEST_F(RemoveContainersTest, NothingIsKnownOfOneWhoseToolFails) {
  SetUpTool("exit 1");
  EXPECT_FALSE(RemoveContainersOf(run_, Patience(kPatience)));
  EXPECT_TRUE(MayHaveContainers(run_));
}

TEST_F(RemoveContainersTest, AToolThatHangsIsWaitedForNoLongerThanThePatienceOfTheWholeCall) {
  SetUpTool("exec sleep 1000");
  std::ofstream(run_ + "/containers", std::ios::app) << "docker muster-k-1-1.8\n";
  // Other tests of this program set the clock.
  const int64_t begin_ms = SteadyMilliseconds();
  EXPECT_FALSE(RemoveContainersOf(run_, Patience(absl::Seconds(1))));
  EXPECT_LT(SteadyMilliseconds() - begin_ms, 30'000);
  EXPECT_TRUE(MayHaveContainers(run_));
}

TEST(RemoveContainers, WhatARunHasWrittenIntoItsListIsLeftAlone) {
  const hosts::TempDir dir;
  const std::string run = dir / "k-1-1";
  std::filesystem::create_directories(run);
  // These belong neither to this run nor to a known tool.
  std::ofstream(run + "/containers") << "podman other\ntouch muster-k-1-1.7\n";
  EXPECT_TRUE(RemoveContainersOf(run, Patience(kPatience)));
  EXPECT_FALSE(Exists("muster-k-1-1.7"));
}

}  // namespace
}  // namespace muster::machines
