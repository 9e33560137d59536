#include "contract/slurm_refusals.h"

#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::contract {
namespace {

// The words of slurm_strerror of Slurm 22.05.
constexpr const char* kAnswers[] = {
    "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
    "Invalid account or account/partition combination specified",
    "Invalid partition name specified",
    "No partition specified or system default partition",
    "Requested time limit is invalid (missing or exceeds some limit)",
    "Requested node configuration is not available",
    "Requested partition configuration not available now",
    "Invalid generic resource (gres) specification",
    "Invalid qos specification",
    "User's group not permitted to use this partition",
    "Access/permission denied",
    "Node count specification invalid",
    "More processors requested than permitted",
    "Memory required by task is not available",
    "Required partition not available (inactive or drain)",
    "System submissions disabled",
    "Invalid node name specified",
    "Job dependency problem",
    "Circular job dependency",
    "I/O error writing script/environment to file",
    "Invalid license specification",
    "Requested nodes not in this partition",
    "Required node not available (down, drained or reserved)",
    "Requested reservation is in use",
    "Requested reservation is invalid",
    "Access denied to requested reservation",
    "Pathname of a file, directory or other parameter too long",
    "Invalid feature specification",
};

TEST(SlurmRefusals, EveryAnswerHasAMeaningAndARemedy) {
  for (const char* answer : kAnswers) {
    const SlurmRefusal* refusal = FindSlurmRefusal(answer);
    ASSERT_NE(refusal, nullptr) << answer;
    EXPECT_NE(refusal->meaning, "") << answer;
    EXPECT_TRUE(refusal->remedy.ends_with('.')) << answer;
  }
}

// A job of sbatch's has no file with fields.
TEST(SlurmRefusals, ARemedyThatNamesAFieldNamesAnOptionOfSbatchToo) {
  std::vector<std::string_view> answers(std::begin(kAnswers), std::end(kAnswers));
  answers.insert(answers.end(),
                 {"Task count specification invalid", "Task distribution specification invalid",
                  "Job size specification needs to be provided", "Duplicate generic resource",
                  "Requested GRES option unsupported", "Invalid preferred feature",
                  "Job --batch option is invalid", "Invalid time-min specification", "Burst Buffer",
                  "Requested operation not supported on this system"});
  for (const std::string_view answer : answers) {
    const SlurmRefusal* refusal = FindSlurmRefusal(answer);
    ASSERT_NE(refusal, nullptr) << answer;
    const std::string remedy(refusal->remedy);
    EXPECT_EQ(remedy.find("section"), std::string::npos) << remedy;
    for (const char* field : {"slurm.", "placement.", "time_limit", "resources"}) {
      if (remedy.find(field) != std::string::npos) {
        EXPECT_NE(remedy.find("--"), std::string::npos) << remedy;
      }
    }
  }
}

TEST(SlurmRefusals, WhatIsTheClustersFaultIsNotTheJobs) {
  for (const char* answer :
       {"I/O error writing script/environment to file",
        "Required partition not available (inactive or drain)", "System submissions disabled"}) {
    EXPECT_EQ(FindSlurmRefusal(answer)->failure_class, v1::FAILURE_CLASS_INFRA) << answer;
    EXPECT_TRUE(FindSlurmRefusal(answer)->retriable) << answer;
  }
  for (const char* answer : {"Invalid partition name specified", "Invalid qos specification",
                             "User's job submission is disabled"}) {
    EXPECT_FALSE(FindSlurmRefusal(answer)->retriable) << answer;
  }
}

TEST(SlurmRefusals, AnAnswerThatLeavesTheJobsFateOpenIsNoRefusal) {
  for (const char* answer : {"Socket timed out on send/recv operation",
                             "Unable to contact slurm controller (connect failure)",
                             "Unspecified error", "Zero Bytes were transmitted or received", ""}) {
    EXPECT_EQ(FindSlurmRefusal(answer), nullptr) << answer;
  }
}

}  // namespace
}  // namespace muster::contract
