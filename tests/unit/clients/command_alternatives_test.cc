// Tests which of a task's alternatives the command submits.
#include <vector>

#include "absl/time/clock.h"
#include "contract/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/clients/command_fixture.h"

namespace muster::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A broker that plans by the job's type of GPU.
class AlternativesTest : public CommandTest {
 protected:
  AlternativesTest() {
    broker_.plan_job = [this](const v1::PlanJobRequest& request) { return PlanFor(request); };
  }

  absl::StatusOr<v1::PlanJobResponse> PlanFor(const v1::PlanJobRequest& request) {
    const v1::JobSpec& spec = request.spec();
    EXPECT_EQ(spec.uploads_size(), 0) << "nothing has been read yet";
    const std::string type =
        spec.resources().gpus_size() == 0 ? "none" : spec.resources().gpus(0).type();
    asked_.push_back(type);
    if (!answer_.ok()) return answer_;
    if (type == refused_) return absl::InvalidArgumentError("no");
    if (type == away_)
      return contract::Error(absl::StatusCode::kUnavailable, "NO_CLUSTER_CONNECTED", "away");
    v1::PlanJobResponse response;
    v1::JobPlan& plan = *response.add_plans();
    plan.set_cluster("box");
    v1::ClusterCheck& check = *plan.add_checks();
    check.set_seen("too few GPUs");
    check.set_result(type == free_ || type == busy_ ? v1::CHECK_RESULT_OK : v1::CHECK_RESULT_FAIL);
    const absl::Time start = absl::Now() + (type == free_ ? absl::ZeroDuration() : absl::Hours(1));
    plan.mutable_estimated_start_time()->set_seconds(absl::ToUnixSeconds(start));
    return response;
  }

  // The type of GPU of what is submitted; the remark is in `err_`.
  std::string Taken(const std::string& text, std::vector<std::string> words = {"submit"}) {
    words.push_back(WriteFile(text));
    const Outcome outcome = Run(std::move(words));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    err_ = outcome.err;
    if (submitted_.empty()) return "nothing";
    const auto& gpus = submitted_.back().spec().resources().gpus();
    return gpus.empty() ? "none" : gpus[0].type();
  }

  const std::string task_ =
      "num_nodes: 1\nrun: x\nresources: {any_of: [{accelerators: H100}, "
      "{accelerators: A100:2}, {cpus: 2}]}\n";
  std::string free_, busy_, refused_, away_;
  absl::Status answer_;
  std::vector<std::string> asked_;
  std::string err_;
};

TEST_F(AlternativesTest, TheFirstThatWouldStartAtOnceIsTaken) {
  busy_ = "H100";
  free_ = "A100";
  EXPECT_EQ(Taken(task_), "A100");
  EXPECT_THAT(err_, HasSubstr("of 3 alternatives number 2 (A100:2) is taken: it is the first that "
                              "would start at once"));
  EXPECT_THAT(asked_, ElementsAre("H100", "A100")) << "no further one is asked for";
}

TEST_F(AlternativesTest, ElseTheFirstThatAClusterCanRun) {
  refused_ = "H100";
  busy_ = "A100";
  EXPECT_EQ(Taken(task_), "A100");
  EXPECT_THAT(err_, HasSubstr("it is the first that a cluster can run"));
  EXPECT_THAT(asked_, ElementsAre("H100", "A100", "none"));
}

TEST_F(AlternativesTest, TheFirstRemainsIfNoneCanRunAndWhatStandsAgainstEachIsTold) {
  refused_ = "A100";
  EXPECT_EQ(Taken(task_), "H100");
  EXPECT_THAT(err_, HasSubstr("number 1 (H100:1) is taken: no cluster that is connected can run"));
  EXPECT_THAT(err_, HasSubstr("number 1 (H100:1): box: too few GPUs\n"));
  EXPECT_THAT(err_, HasSubstr("number 2 (A100:2): no\n"));
  EXPECT_THAT(err_, HasSubstr("number 3 (2 CPUs): box: too few GPUs\n"));
}

TEST_F(AlternativesTest, WhatNobodyKnowsOfOneEndsNotTheChoice) {
  away_ = "H100";
  busy_ = "A100";
  EXPECT_EQ(Taken(task_), "A100") << "what a cluster can run comes first";
  busy_.clear();
  EXPECT_EQ(Taken(task_), "H100") << "a cluster that is away may have it";
  EXPECT_THAT(err_, HasSubstr("number 1 (H100:1) is taken: no cluster that can be asked now"));
}

TEST_F(AlternativesTest, WhatIsNoMatterOfAlternativesIsLeftToTheSubmission) {
  answer_ = absl::UnimplementedError("an older broker");
  EXPECT_EQ(Taken(task_), "H100");
  EXPECT_EQ(err_.find("alternatives"), std::string::npos) << err_;
  EXPECT_THAT(asked_, ElementsAre("H100"));
}

TEST_F(AlternativesTest, WhereTheCommandLineMakesThemOneNoneIsAskedFor) {
  const std::string task = "num_nodes: 1\nrun: x\nresources: {accelerators: {H100: 1, A100: 1}}\n";
  EXPECT_EQ(Taken(task, {"submit", "--gpus", "V100"}), "V100");
  EXPECT_THAT(asked_, IsEmpty());
  EXPECT_EQ(err_.find("alternatives"), std::string::npos) << err_;
}

TEST_F(AlternativesTest, TheRemarkHasWhatIsAskedForAndItsPlace) {
  busy_ = "V100";
  EXPECT_EQ(Taken(task_, {"submit", "--gpus", "V100"}), "V100");
  EXPECT_THAT(err_, HasSubstr("job.yaml:3:12: of 2 alternatives number 1 (V100:1) is taken"));
  EXPECT_THAT(asked_, ElementsAre("V100", "V100")) << "the third, with 2 CPUs, is another one";
}

TEST_F(AlternativesTest, OneThatIsThereTwiceIsAskedForOnce) {
  busy_ = "A100";
  const std::string task =
      "num_nodes: 1\nrun: x\nresources: {any_of: [{accelerators: H100, infra: slurm/b/q}, "
      "{accelerators: A100, infra: slurm/b/p}, {accelerators: A100, infra: slurm/b/q}, "
      "{accelerators: A100, infra: slurm/b/q}, {accelerators: H100, infra: slurm/b/q}]}\n";
  EXPECT_EQ(Taken(task), "A100");
  EXPECT_THAT(asked_, ElementsAre("H100", "A100", "A100"));
  EXPECT_THAT(err_, HasSubstr("of 3 alternatives number 2"));
}

TEST_F(AlternativesTest, ATaskWithoutAnyAsksNothing) {
  EXPECT_EQ(Taken("num_nodes: 1\nrun: x\nresources: {accelerators: H100}\n"), "H100");
  EXPECT_THAT(asked_, IsEmpty());
  EXPECT_EQ(err_.find("alternatives"), std::string::npos);
}

TEST_F(AlternativesTest, ExecTakesOneThatTheClusterCanRun) {
  free_ = "A100";
  const std::string task =
      "run: x\nresources: {ordered: [{infra: k8s/other, accelerators: A100}, {accelerators: "
      "A100:4}]}\n";
  const Outcome outcome = Run({"sky", "exec", "box", "-d", WriteFile(task)});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(submitted_.back().spec().resources().gpus(0).count_millis(), 4000u);
  EXPECT_THAT(submitted_.back().spec().placement().clusters(), ElementsAre("box"));
}

}  // namespace
}  // namespace muster::cli
