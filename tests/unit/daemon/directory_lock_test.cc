#include "daemon/directory_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/unit/hosts/temp_dir.h"

namespace muster {
namespace {

using testing::HasSubstr;

class DirectoryLockTest : public testing::Test {
 protected:
  auto Take() { return DirectoryLock::Take(options_); }

  const hosts::TempDir dir_;
  DirectoryLock::Options options_ = {.path = dir_.path() + "/lock",
                                     .if_held = "stop that one",
                                     .if_not_writable = "choose another place"};
};

TEST_F(DirectoryLockTest, ASecondHolderIsRefusedWithTheFirstOnesProcessAndTheRemedy) {
  auto first = Take();
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status second = Take().status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.message()),
              HasSubstr("process " + std::to_string(getpid()) + " holds it; stop that one"));
}

TEST_F(DirectoryLockTest, IsFreeOnceItsHolderIsGone) {
  Take().status().IgnoreError();
  EXPECT_TRUE(Take().ok());
}

TEST_F(DirectoryLockTest, APlaceThatCannotBeWrittenIsNamedWithTheRemedy) {
  options_.path = dir_.path() + "/nowhere/lock";
  const absl::Status status = Take().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()), HasSubstr(options_.path));
  EXPECT_THAT(std::string(status.message()), HasSubstr("; choose another place"));
}

}  // namespace
}  // namespace muster
