// Signals to jobs by `muster signal` and `muster scancel`, against a fake broker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/clients/slurm_verbs_fixture.h"

namespace muster::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SignalVerbsTest : public SlurmVerbsTest {
 protected:
  SignalVerbsTest() {
    broker_.signal_jobs =
        [this](const v1::SignalJobsRequest& request) -> absl::StatusOr<v1::SignalJobsResponse> {
      requests_.push_back(request);
      v1::SignalJobsResponse response;
      for (const uint64_t id : request.job_ids()) {
        v1::JobSignal& one = *response.add_signals();
        one.set_job_id(id);
        if (id != 8) continue;
        one.mutable_error()->set_code(static_cast<int>(absl::StatusCode::kFailedPrecondition));
        one.mutable_error()->set_message("job 8 is PENDING");
      }
      return response;
    };
    broker_.cancel_jobs =
        [this](const v1::CancelJobsRequest& request) -> absl::StatusOr<v1::CancelJobsResponse> {
      canceled_.insert(canceled_.end(), request.job_ids().begin(), request.job_ids().end());
      return v1::CancelJobsResponse();
    };
  }

  // Returns "USR1 COMMAND 7", the last request in words; empty if there was none.
  std::string Asked() {
    if (requests_.empty()) return "";
    const v1::SignalJobsRequest& request = requests_.back();
    std::string words = request.signal() + " " +
                        v1::SignalTarget_Name(request.target()).substr(sizeof "SIGNAL_TARGET");
    for (const uint64_t id : request.job_ids()) words += " " + std::to_string(id);
    return words;
  }

  std::vector<v1::SignalJobsRequest> requests_;
  std::vector<uint64_t> canceled_;
};

TEST_F(SignalVerbsTest, SignalTakesANameAndATarget) {
  const Outcome sent = Run({"signal", "7", "--signal", "USR1"});
  EXPECT_EQ(sent.code, 0);
  EXPECT_EQ(sent.out, "");
  EXPECT_THAT(sent.err, HasSubstr("signal USR1 sent to job 7"));
  EXPECT_EQ(Asked(), "USR1 COMMAND 7");
  EXPECT_EQ(Run({"signal", "7", "--signal", "15", "--batch"}).code, 0);
  EXPECT_EQ(Asked(), "15 BATCH 7");
  EXPECT_EQ(Run({"signal", "7", "--signal", "15", "--all"}).code, 0);
  EXPECT_EQ(Asked(), "15 ALL 7");
  EXPECT_EQ(Run({"signal", "7", "--signal", "15", "--all", "--batch"}).code, 2);
  EXPECT_EQ(Run({"signal", "7"}).code, 2);
  EXPECT_EQ(Run({"signal", "--signal", "USR1"}).code, 2);
}

TEST_F(SignalVerbsTest, AJobThatDoesNotGetItIsAnErrorAndTheOthersGetIt) {
  const Outcome some = Run({"signal", "8", "7", "--signal", "USR1"});
  EXPECT_EQ(some.code, 1);
  EXPECT_THAT(some.err, HasSubstr("job 8 is PENDING"));
  EXPECT_THAT(some.err, HasSubstr("sent to job 7"));
}

TEST_F(SignalVerbsTest, ScancelReadsSignalsAsSlurmDoes) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"scancel", "-s", "USR1", "7"}, "USR1 COMMAND 7"},
      {{"scancel", "--signal=SIGTERM", "7"}, "SIGTERM COMMAND 7"},
      {{"scancel", "-s", "10", "-b", "7"}, "10 BATCH 7"},
      {{"scancel", "-b", "7"}, "KILL BATCH 7"},
      {{"scancel", "-f", "-s", "usr2", "7"}, "usr2 ALL 7"},
      {{"scancel", "-s", "USR1", "-n", "train", "-u", "ada"}, "USR1 COMMAND 7"},
  };
  for (const auto& [words, asked] : cases) {
    requests_.clear();
    const Outcome outcome = Run(words);
    EXPECT_EQ(outcome.code, 0) << asked << outcome.err;
    EXPECT_EQ(outcome.out + outcome.err, "");
    EXPECT_EQ(Asked(), asked);
  }
  EXPECT_THAT(canceled_, IsEmpty());
}

TEST_F(SignalVerbsTest, KillIsTheEndOfAJobAsWithSlurm) {
  EXPECT_EQ(Run({"scancel", "-s", "KILL", "7"}).code, 0);
  EXPECT_EQ(Run({"scancel", "-s", "9", "8"}).code, 0);
  EXPECT_EQ(Run({"scancel", "-f", "7"}).code, 0);
  EXPECT_THAT(requests_, IsEmpty());
  EXPECT_THAT(canceled_, ElementsAre(7u, 8u, 7u));
}

TEST_F(SignalVerbsTest, ScancelSaysWhichJobDidNotGetIt) {
  const Outcome one = Run({"scancel", "-s", "USR1", "-v", "8", "7"});
  EXPECT_EQ(one.code, 1);
  EXPECT_EQ(one.err,
            "scancel: error: Kill job error on job id 8: job 8 is PENDING\n"
            "scancel: Signal 10 to job 7\n");
  const Outcome unknown = Run({"scancel", "-s", "FOO", "7"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("Unknown job signal: \"FOO\""));
}

}  // namespace
}  // namespace muster::cli
