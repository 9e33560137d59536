// Leases in the start script, run for real by the shells that images have: what is started, what is
// stopped, and what the record says. Here the script is not the first process of a container.
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/time/clock.h"
#include "agents/core/lease_file.h"
#include "agents/kubernetes/manifest/pod_lease.h"
#include "agents/kubernetes/manifest/run_secret.h"
#include "agents/kubernetes/objects/end_record.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::kubernetes {
namespace {

using Problem = EndRecord::Problem;

constexpr char kSeal[] = "0a1b";
constexpr char kGoesOn[] = "trap 'echo saved; exit 0' TERM\nwhile :; do sleep 0.1; done";

std::string ReadAll(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class StartLeaseTest : public testing::TestWithParam<std::string> {
 protected:
  StartLeaseTest() {
    for (const char* name : {"/files", "/lease", "/work"})
      std::filesystem::create_directories(root_ + name);
    assignment_.set_run_key("k7m2-42-1");
    spec().set_on_cluster_loss(v1::CLUSTER_LOSS_POLICY_FAIL_OVER_WHEN_FENCED);
  }

  v1::JobSpec& spec() { return *assignment_.mutable_spec(); }

  void Renew(absl::Duration remaining, absl::Duration age = absl::ZeroDuration()) {
    Put(FormatLeaseFile(agents::NextLease(0, absl::ToUnixMillis(absl::Now() - age),
                                          absl::ToInt64Milliseconds(remaining))));
  }
  void Put(const std::string& text) { std::ofstream(root_ + "/lease/lease") << text; }

  // Runs the script to its end; returns its exit code.
  int Run(const std::string& script, const std::string& terms = "1 5 1\n") {
    spec().mutable_command()->set_script("#!/bin/bash\n" + script);
    for (const auto& [name, content] :
         MakeRunFiles(assignment_, "lab", root_ + "/files", root_ + "/work")) {
      std::ofstream(root_ + "/files/" + name) << content;
      std::filesystem::permissions(root_ + "/files/" + name, std::filesystem::perms(0700));
    }
    if (std::filesystem::exists(root_ + "/files/lease"))
      std::ofstream(root_ + "/files/lease") << terms;
    std::filesystem::remove(root_ + "/last");
    const int status = system(fmt::format("{0}={1} {2} {3}/files/start {3}/last >{3}/out 2>{3}/err",
                                          kSealVariable, kSeal, GetParam(), root_)
                                  .c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string Out() const { return ReadAll(root_ + "/out"); }
  std::vector<EndRecord> Records() const {
    std::string message = ReadAll(root_ + "/last");
    return TakeEndRecords(kSeal, &message);
  }
  void ExpectRecord(Problem problem, EndRecord::Phase phase = EndRecord::Phase::kCommand) const {
    const std::vector<EndRecord> records = Records();
    ASSERT_EQ(records.size(), 1u) << ReadAll(root_ + "/last") << ReadAll(root_ + "/err");
    EXPECT_EQ(records.front().problem, problem);
    EXPECT_EQ(records.front().phase, phase);
  }

  const hosts::TempDir temp_;
  const std::string& root_ = temp_.path();
  agent::v1::Assignment assignment_;
};

TEST_P(StartLeaseTest, WithoutALeaseNobodyLooksAtTheFile) {
  spec().clear_on_cluster_loss();
  EXPECT_EQ(Run("echo ran; exit 3"), 3);
  EXPECT_EQ(Out(), "ran\n");
  EXPECT_EQ(Records().size(), 0u);
}

TEST_P(StartLeaseTest, AProgramThatEndsInTimeEndsAsItDoes) {
  Renew(absl::Hours(1));
  for (const int code : {0, 3, 143}) {
    EXPECT_EQ(Run(fmt::format("exit {}", code)), code);
    EXPECT_EQ(Records().size(), 0u) << code;
  }
  EXPECT_EQ(ReadAll(root_ + "/err"), "");
}

TEST_P(StartLeaseTest, WithoutAFileOrAfterItsEndNothingIsStarted) {
  EXPECT_NE(Run("echo ran"), 0);
  ExpectRecord(Problem::kNoLease);
  Renew(absl::Minutes(1), absl::Minutes(2));
  EXPECT_NE(Run("echo ran"), 0);
  ExpectRecord(Problem::kNoLease);
  for (const char* text :
       {"", "muster-lease 1 17", "muster-lease 2 17 3600000 9999999999999\n",
        "muster-lease 1 17 3600000 9999999999999 5\n", "muster-lease 1 17 -1 9999999999999\n"}) {
    Put(text);
    EXPECT_NE(Run("echo ran"), 0) << text;
    ExpectRecord(Problem::kNoLease);
  }
  // The end of a clock that goes wrong.
  Renew(absl::Minutes(1), -absl::Hours(1));
  EXPECT_NE(Run("echo ran"), 0);
  ExpectRecord(Problem::kNoLease);
  EXPECT_EQ(Out(), "");
}

TEST_P(StartLeaseTest, AtItsEndTheProgramGetsATermAndA0IsNoSuccess) {
  Renew(absl::Seconds(4));
  EXPECT_NE(Run(kGoesOn, "1 5 30\n"), 0);
  EXPECT_EQ(Out(), "saved\n");
  ExpectRecord(Problem::kLeaseEnded);
}

TEST_P(StartLeaseTest, WhoIgnoresTheTermIsKilledAfterTheGrace) {
  Renew(absl::Seconds(4));
  EXPECT_EQ(Run("trap '' TERM; while :; do sleep 0.1; done"), 137);
  ExpectRecord(Problem::kLeaseEnded);
}

TEST_P(StartLeaseTest, ARenewedLeaseLasts) {
  Renew(absl::Seconds(4));
  EXPECT_EQ(Run(fmt::format("for i in 1 2 3 4 5 6 7; do printf -v now '%(%s)T' -1\n"
                            "echo muster-lease 1 $((now + i))999 4000 $((now + 4))000 >{0}.new\n"
                            "mv {0}.new {0}; sleep 1; done; exit 7",
                            root_ + "/lease/lease")),
            7);
  EXPECT_EQ(Records().size(), 0u);
}

TEST_P(StartLeaseTest, TheSetupHasItTooAndNoCommandFollows) {
  Renew(absl::Seconds(4));
  spec().set_setup(std::string("#!/bin/bash\n") + kGoesOn);
  EXPECT_NE(Run("echo ran"), 0);
  EXPECT_EQ(Out(), "saved\n");
  ExpectRecord(Problem::kLeaseEnded, EndRecord::Phase::kSetup);
  Renew(absl::Hours(1));
  spec().set_setup("rm " + root_ + "/lease/lease");
  EXPECT_NE(Run("echo ran"), 0);
  EXPECT_EQ(Out(), "");
  ExpectRecord(Problem::kNoLease);
}

INSTANTIATE_TEST_SUITE_P(Shells, StartLeaseTest,
                         testing::Values("dash", "busybox sh", "bash --posix"),
                         [](const auto& shell) {
                           return shell.param.substr(0, shell.param.find(' '));
                         });

}  // namespace
}  // namespace muster::kubernetes
