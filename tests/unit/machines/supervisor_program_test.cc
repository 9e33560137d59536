// Putting the supervisor onto a host, where others may have been first.
#include "agents/machines/remote/supervisor_program.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "agents/hosts/local_host.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/hosts/temp_dir.h"
#include "tests/unit/machines/backend_fixture.h"

namespace muster::machines {
namespace {

using ::testing::HasSubstr;

class SupervisorProgramTest : public ::testing::Test {
 protected:
  SupervisorProgramTest() {
    std::ofstream(dir_ / "program") << "#!/bin/sh\necho 1\n";
    program_ = *ReadSupervisorProgram(dir_ / "program");
  }

  absl::StatusOr<std::string> Put() { return PutSupervisor(program_, directory_, &host_); }
  std::string PathThere() const { return program_.DirectoryIn(directory_) + "/muster-supervisor"; }

  hosts::TempDir dir_;
  const std::string directory_ = dir_ / "lab/gpu1";
  hosts::LocalHost host_;
  SupervisorProgram program_;
};

TEST_F(SupervisorProgramTest, ItIsPutThereOnceForTheUserAlone) {
  EXPECT_EQ(*Put(), PathThere());
  EXPECT_EQ(ReadAll(PathThere()), program_.content);
  EXPECT_TRUE(Exists(directory_ + "/runs"));
  const auto written = std::filesystem::last_write_time(PathThere());
  EXPECT_TRUE(Put().ok());
  EXPECT_EQ(std::filesystem::last_write_time(PathThere()), written);
  EXPECT_EQ(std::filesystem::status(directory_).permissions(), std::filesystem::perms::owner_all);
}

TEST_F(SupervisorProgramTest, AnotherProgramInItsPlaceIsReplaced) {
  ASSERT_TRUE(Put().ok());
  std::ofstream(PathThere()) << "#!/bin/sh\necho another\n";
  EXPECT_TRUE(Put().ok());
  EXPECT_EQ(ReadAll(PathThere()), program_.content);
}

TEST_F(SupervisorProgramTest, ADirectoryThatOthersMayWriteInIsNotTrusted) {
  for (const std::string& open : {dir_ / "lab", directory_, directory_ + "/bin"}) {
    ASSERT_TRUE(Put().ok());
    ASSERT_EQ(chmod(open.c_str(), 0777), 0);
    const absl::Status put = Put().status();
    EXPECT_TRUE(absl::IsFailedPrecondition(put)) << put;
    EXPECT_THAT(std::string(put.message()), HasSubstr(open));
    EXPECT_THAT(std::string(put.message()), HasSubstr("machines.host_directory"));
    ASSERT_EQ(chmod(open.c_str(), 0700), 0);
  }
}

TEST_F(SupervisorProgramTest, EarlierVersionsAreRemoved) {
  ASSERT_TRUE(Put().ok());
  const std::string earlier = PathThere();
  std::ofstream(dir_ / "program") << "#!/bin/sh\necho 2\n";
  program_ = *ReadSupervisorProgram(dir_ / "program");
  ASSERT_TRUE(Put().ok());
  EXPECT_NE(PathThere(), earlier);
  EXPECT_FALSE(Exists(earlier));
}

TEST_F(SupervisorProgramTest, OneThatDoesNotRunThereIsToldWithTheRemedy) {
  std::ofstream(dir_ / "program") << "#!/bin/sh\necho 'no such processor' >&2; exit 1\n";
  program_ = *ReadSupervisorProgram(dir_ / "program");
  const absl::Status put = Put().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(put)) << put;
  EXPECT_THAT(std::string(put.message()), HasSubstr("no such processor"));
}

}  // namespace
}  // namespace muster::machines
