// A script is in the place of muster-run-as.
#include "agents/users/run_as_host.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "agents/hosts/local_host.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::users {
namespace {

using testing::HasSubstr;

class AskRunAsTest : public testing::Test {
 protected:
  AskRunAsTest() { std::filesystem::create_directories(directory_); }
  ~AskRunAsTest() override { std::filesystem::remove_all(directory_); }

  absl::StatusOr<std::string> Ask(const std::string& script) {
    std::ofstream(helper_) << "#!/bin/sh\n" << script << "\n";
    chmod(helper_.c_str(), 0700);
    return AskRunAs(&host_, helper_, {"ada"});
  }

  const std::string directory_ = testing::TempDir() + "muster-ask-run-as-test";
  const std::string helper_ = directory_ + "/helper";
  hosts::LocalHost host_;
};

TEST_F(AskRunAsTest, ItsAnswerIsTheWorkRoot) {
  EXPECT_EQ(Ask("echo \"/work $*\"").value(), "/work check ada");
}

TEST_F(AskRunAsTest, ItsRefusalIsForGood) {
  const absl::Status refused = Ask("echo 'muster-run-as: no' >&2; exit 125").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.message(), "muster-run-as: no");
  std::filesystem::remove(helper_);
  EXPECT_EQ(AskRunAs(&host_, helper_, {"ada"}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(AskRunAsTest, WhoCannotTellNowIsAskedAgain) {
  const absl::Status later = Ask("echo 'muster-run-as: PAM' >&2; exit 75").status();
  EXPECT_EQ(later.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(later.message(), "muster-run-as: PAM");
  const absl::Status killed = Ask("kill -9 $$").status();
  EXPECT_EQ(killed.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(killed.message()), HasSubstr("signal 9"));
}

}  // namespace
}  // namespace muster::users
