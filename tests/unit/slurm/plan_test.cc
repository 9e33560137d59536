#include "agents/slurm/plan.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/status/status.h"
#include "agents/slurm/slurm.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kEstimate[] =
    "Job 25 to start at 1795251029 using 2 processors on nodes n[1-2] in partition debug";

TEST(PlanTest, AnEstimateHasATimeAndNodes) {
  const auto estimate = ParseEstimate(kEstimate);
  ASSERT_TRUE(estimate.has_value());
  EXPECT_EQ(estimate->start, absl::FromUnixSeconds(1795251029));
  EXPECT_THAT(estimate->nodes, ElementsAre("n1", "n2"));
  EXPECT_FALSE(ParseEstimate("").has_value());
  EXPECT_FALSE(ParseEstimate("Job 25 to start at Unknown").has_value());
}

TEST(PlanTest, AnEstimateGoesIntoThePlan) {
  agents::CheckList checks;
  v1::JobPlan plan;
  TakeEstimate(std::string(kEstimate), &checks, &plan);
  EXPECT_EQ(plan.estimated_start_time().seconds(), 1795251029);
  EXPECT_THAT(plan.nodes(), ElementsAre("n1", "n2"));
  EXPECT_EQ(checks.checks().checks(0).result(), v1::CHECK_RESULT_OK);
  EXPECT_THAT(checks.checks().checks(0).seen(), HasSubstr("to start at 2026-11-21T08:50:29Z us"));
}

struct Case {
  absl::Status said;
  v1::CheckResult result;
  std::string seen;
  std::string remedy;
};

TEST(PlanTest, WhatSlurmWouldRefuseIsAFailureWithItsRemedy) {
  const Case cases[] = {
      {absl::InvalidArgumentError("error: invalid partition specified: nope\n"
                                  "allocation failure: Invalid partition name specified"),
       v1::CHECK_RESULT_FAIL, "no such partition", "Set pool (--pool; --partition of sbatch)"},
      {absl::InvalidArgumentError("error: QOSMaxCpuPerUserLimit\n"
                                  "allocation failure: Job violates accounting/QOS policy (x)"),
       v1::CHECK_RESULT_FAIL, "the job itself asks for more CPUs than its QOS allows one user",
       "Ask for less, or use another QOS"},
      {absl::InvalidArgumentError("allocation failure: Something new"), v1::CHECK_RESULT_FAIL,
       "Something new", "Slurm's words"},
      {absl::UnavailableError("Unable to contact slurm controller"), v1::CHECK_RESULT_FAIL,
       "could not be asked", "muster check"},
      {absl::UnimplementedError("slurmrestd does not tell"), v1::CHECK_RESULT_SKIPPED,
       "slurmrestd does not tell", ""},
  };
  for (const Case& one : cases) {
    agents::CheckList checks;
    v1::JobPlan plan;
    TakeEstimate(one.said, &checks, &plan);
    const v1::ClusterCheck& check = checks.checks().checks(0);
    EXPECT_EQ(check.result(), one.result) << one.said;
    EXPECT_THAT(check.seen(), HasSubstr(one.seen));
    EXPECT_THAT(check.remedy(), HasSubstr(one.remedy));
    EXPECT_FALSE(plan.has_estimated_start_time());
  }
}

TEST(PlanTest, TheSetupAndEachRoleAreShown) {
  v1::JobSpec spec;
  spec.set_setup("module load cuda");
  v1::Role* server = spec.add_roles();
  server->set_name("server");
  server->set_nodes(1);
  server->mutable_command()->mutable_argv()->add_args("serve it");
  v1::Role* workers = spec.add_roles();
  workers->set_name("workers");
  workers->set_nodes(2);
  workers->set_first_node(1);
  workers->mutable_command()->set_script("work");
  const absl::StatusOr<std::string> text = ProgramsText(spec);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("setup, which batch.sh runs before the programs\n"
                               "module load cuda\n"));
  EXPECT_THAT(*text, HasSubstr("role server (nodes: 1, the first: 0)'s command, which batch.sh "
                               "starts: 'serve it'\n"));
  EXPECT_THAT(*text, HasSubstr("role workers (nodes: 2, the first: 1)'s script"));
  EXPECT_THAT(*text, HasSubstr("\nwork\n"));
  EXPECT_THAT(*text, Not(HasSubstr("the job's command")));
}

TEST(PlanTest, AJobWithoutRolesShowsItsCommand) {
  v1::JobSpec spec;
  spec.mutable_command()->mutable_argv()->add_args("train");
  EXPECT_EQ(*ProgramsText(spec), "# ---- the job's command, which batch.sh starts: 'train'\n");
}

// Slurm would take each job; sbatch is a script that says so.
class PlanChecksTest : public testing::Test {
 protected:
  PlanChecksTest() {
    const std::string path = dir_.path() + "/sbatch";
    std::ofstream(path) << "#!/bin/sh\necho '" << kEstimate << "' >&2\n";
    std::filesystem::permissions(path, std::filesystem::perms(0700));
    std::filesystem::create_directory(dir_.path() + "/data");
    spec_.mutable_command()->mutable_argv()->add_args("true");
    config_.cluster = "lab";
    config_.run_dir = dir_.path() + "/runs";
    config_.bin_dir = dir_.path();
    config_.storage_roots = {{"lustre", dir_.path() + "/data"}};
    config_.max_polls_per_minute = 0;
  }

  v1::JobPlan Plan() {
    const auto plan = CreateSlurmBackend(config_, dir_.path())->Plan(spec_, "ada");
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (!plan.ok()) return v1::JobPlan();
    for (const v1::ClusterCheck& check : plan->checks())
      EXPECT_NE(check.code(), v1::CHECK_CODE_UNSPECIFIED) << check.DebugString();
    return *plan;
  }
  static v1::ClusterCheck Line(const v1::JobPlan& plan, const std::string& subject) {
    for (const v1::ClusterCheck& check : plan.checks()) {
      if (check.subject() == subject) return check;
    }
    ADD_FAILURE() << "no line about " << subject << " in " << plan.DebugString();
    return {};
  }
  static bool Fails(const v1::JobPlan& plan) {
    return std::any_of(plan.checks().begin(), plan.checks().end(),
                       [](const auto& check) { return check.result() == v1::CHECK_RESULT_FAIL; });
  }

  hosts::TempDir dir_;
  SlurmConfig config_;
  v1::JobSpec spec_;
};

TEST_F(PlanChecksTest, TheScriptThatIsAlikeForAllJobsComesApart) {
  spec_.mutable_command()->set_script("echo mine");
  spec_.set_setup("echo before");
  const v1::JobPlan plan = Plan();
  EXPECT_THAT(plan.shared(), HasSubstr("batch.sh\n#!/bin/bash\n"));
  const std::string& own = plan.submission();
  for (const char* words :
       {"# sbatch '--job-name=plan-1-1'", "echo mine", "echo before", "env/environment",
        "specs/command ", "specs/job.json", "meta/run.json", "sbatch/batch.sh"}) {
    EXPECT_THAT(own, HasSubstr(words));
  }
  EXPECT_LE(std::count(own.begin(), own.end(), '\n'), 12) << own;
}

TEST_F(PlanChecksTest, APathOutsideTheRootsFailsAndIsNamed) {
  spec_.add_inputs()->set_uri("/elsewhere/train");
  const v1::JobPlan plan = Plan();
  EXPECT_EQ(Line(plan, "the job").result(), v1::CHECK_RESULT_FAIL);
  EXPECT_THAT(Line(plan, "the job").seen(), HasSubstr("inputs[0].uri"));
  EXPECT_THAT(plan.submission(), IsEmpty());
}

TEST_F(PlanChecksTest, AStatusJsonWithoutAPlaceForResultsFails) {
  spec_.set_status_json(true);
  EXPECT_THAT(Line(Plan(), "the job").seen(), HasSubstr("status_json"));
  config_.results_root = dir_.path() + "/results";
  EXPECT_FALSE(Fails(Plan()));
  EXPECT_FALSE(std::filesystem::exists(config_.results_root)) << "a plan leaves nothing behind";
}

TEST_F(PlanChecksTest, InputsAreLookedAt) {
  spec_.add_inputs()->set_uri("slurm://lustre/train");
  const v1::JobPlan missing = Plan();
  EXPECT_EQ(Line(missing, "inputs").result(), v1::CHECK_RESULT_FAIL);
  EXPECT_THAT(Line(missing, "inputs").seen(), HasSubstr(dir_.path() + "/data/train"));
  std::ofstream(dir_.path() + "/data/train") << "x";
  const v1::JobPlan there = Plan();
  EXPECT_EQ(Line(there, "inputs").result(), v1::CHECK_RESULT_OK);
  EXPECT_FALSE(Fails(there)) << there.DebugString();
}

}  // namespace
}  // namespace muster::slurm
