// Verbs that ask agents and plan, against a fake broker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "contract/errors.h"
#include "tests/unit/clients/command_fixture.h"

namespace muster::cli {
namespace {

using client::JobInState;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

void AddCheck(v1::CheckClusterResponse* response, const char* subject, v1::CheckResult result,
              const char* seen, const char* remedy) {
  v1::ClusterCheck* check = response->add_checks();
  check->set_subject(subject);
  check->set_result(result);
  check->set_seen(seen);
  check->set_remedy(remedy);
}

TEST_F(CommandTest, CheckShowsEachLineWithItsRemedyAndFailsIfOneDoes) {
  v1::CheckClusterResponse checks;
  AddCheck(&checks, "login node l1:22", v1::CHECK_RESULT_OK, "answers", "");
  AddCheck(&checks, "slurmdbd", v1::CHECK_RESULT_WARN, "is away\nsince noon", "start it");
  broker_.check_cluster = [&](const auto&) -> absl::StatusOr<v1::CheckClusterResponse> {
    return checks;
  };
  const Outcome good = Run({"check", "lab"});
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_EQ(good.out,
            "ok       login node l1:22  answers\n"
            "warn     slurmdbd          is away | since noon\n"
            "         What to do: start it\n");
  AddCheck(&checks, "host key", v1::CHECK_RESULT_FAIL, "it has changed", "ask the site");
  AddCheck(&checks, "account", v1::CHECK_RESULT_FAIL, "is closed", "ask the site");
  AddCheck(&checks, "partition gpu", v1::CHECK_RESULT_SKIPPED, "", "");
  const Outcome bad = Run({"check", "lab"});
  EXPECT_EQ(bad.code, 1);
  // Lines of one cause have their remedy once.
  EXPECT_THAT(bad.out, HasSubstr("FAIL     host key          it has changed\n"
                                 "FAIL     account           is closed\n"
                                 "         What to do: ask the site\n"));
  EXPECT_THAT(bad.out, HasSubstr("skipped  partition gpu\n"));
  EXPECT_EQ(Run({"check", "-q", "lab"}).out, "host key\naccount\n");
  EXPECT_THAT(Run({"check", "-o", "json", "lab"}).out, HasSubstr("CHECK_RESULT_FAIL"));
  EXPECT_EQ(Run({"check"}).code, 2);
}

TEST_F(CommandTest, ForgetAsksTheBrokerAndSaysWhyNot) {
  std::string name;
  broker_.forget_cluster =
      [&](const v1::ForgetClusterRequest& request) -> absl::StatusOr<v1::ForgetClusterResponse> {
    name = request.name();
    if (name == "busy") {
      return contract::Error(absl::StatusCode::kFailedPrecondition, "CLUSTER_HAS_RUNS",
                             "cluster \"busy\" has 2 runs that have not ended");
    }
    return v1::ForgetClusterResponse();
  };
  const Outcome forgotten = Run({"forget", "lab"});
  EXPECT_EQ(forgotten.code, 0) << forgotten.err;
  EXPECT_EQ(name, "lab");
  EXPECT_THAT(forgotten.err, HasSubstr("cluster lab is forgotten"));
  EXPECT_EQ(Run({"forget", "-q", "lab"}).out, "lab\n");
  EXPECT_EQ(Run({"forget", "-o", "json", "lab"}).out, "{}\n");
  const Outcome busy = Run({"forget", "busy"});
  EXPECT_NE(busy.code, 0);
  EXPECT_THAT(busy.err, HasSubstr("has 2 runs that have not ended"));
  EXPECT_EQ(Run({"forget"}).code, 2);
}

TEST_F(CommandTest, AClusterIsShownAsItsAgentSeesItNow) {
  broker_.describe_cluster =
      [](const v1::DescribeClusterRequest& request) -> absl::StatusOr<v1::DescribeClusterResponse> {
    v1::DescribeClusterResponse response;
    response.mutable_cluster()->set_name(request.name());
    v1::PoolLoad* pool = response.mutable_details()->add_pools();
    pool->set_pool("gpu");
    pool->mutable_now()->set_is_default(true);
    pool->mutable_now()->set_available(true);
    pool->mutable_now()->mutable_max_time_limit()->set_seconds(86400);
    pool->set_cpus(16);
    pool->set_free_cpus(12);
    (*pool->mutable_gpus())["h100"] = 8;
    (*pool->mutable_free_gpus())["h100"] = 3;
    v1::FreeGpus& shared = (*pool->mutable_now()->mutable_free_gpus())["h100"];
    for (const uint32_t millis : {500, 250, 100, 100, 50}) shared.add_parts_millis(millis);
    pool->set_waiting_jobs(5);
    pool->set_own_waiting_jobs(2);
    pool->add_limits("AllowAccounts=vision");
    v1::Node* node = response.mutable_details()->add_nodes();
    node->set_name("n1");
    node->set_state("down*");
    node->set_reason("power");
    node->set_cpus(8);
    (*node->mutable_gpus())["h100"] = 4;
    (*node->mutable_used_gpus())["h100"] = 1;
    node->add_features("nvlink");
    return response;
  };
  const Outcome outcome = Run({"clusters", "lab"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              HasSubstr("gpu*      up      12/16      h100 3/8 +0.5 +0.25 +0.1 +0.1 ..."));
  const size_t limits = outcome.out.find("at most 1d\n");
  ASSERT_NE(limits, std::string::npos) << outcome.out;
  const size_t column = limits - outcome.out.rfind('\n', limits) - 1;
  EXPECT_EQ(outcome.out.substr(limits + 11, column + 21),
            std::string(column, ' ') + "AllowAccounts=vision\n")
      << "one line for each";
  EXPECT_THAT(outcome.out, HasSubstr("n1        down*"));
  EXPECT_THAT(outcome.out, HasSubstr("h100 3/4"));
  EXPECT_THAT(outcome.out, HasSubstr("power"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("nvlink")));
  EXPECT_THAT(Run({"clusters", "lab", "-o", "wide"}).out, HasSubstr("nvlink"));
  EXPECT_THAT(Run({"clusters", "lab", "-o", "json"}).out, HasSubstr("\"own_waiting_jobs\": 2"));
}

TEST_F(CommandTest, AClusterWhoseAgentDoesNotAnswerIsShownAsItWasWithANote) {
  broker_.describe_cluster = [](const auto&) -> absl::StatusOr<v1::DescribeClusterResponse> {
    return contract::Error(absl::StatusCode::kUnavailable, "NOT_CONNECTED", "its agent is away");
  };
  broker_.get_cluster = [](const auto&) -> absl::StatusOr<v1::GetClusterResponse> {
    v1::GetClusterResponse response;
    response.mutable_cluster()->set_name("lab");
    response.mutable_cluster()->set_agent_version("9.9");
    return response;
  };
  const Outcome outcome = Run({"clusters", "lab"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("9.9"));
  EXPECT_THAT(outcome.err, HasSubstr("its agent did not answer: its agent is away"));
}

TEST_F(CommandTest, HoldAndReleaseNameTheirJobs) {
  v1::HoldJobsRequest held;
  broker_.hold_jobs =
      [&](const v1::HoldJobsRequest& request) -> absl::StatusOr<v1::HoldJobsResponse> {
    held = request;
    v1::HoldJobsResponse response;
    *response.add_jobs() = JobInState(42, v1::JOB_STATE_PENDING);
    return response;
  };
  broker_.release_jobs = [](const auto&) -> absl::StatusOr<v1::ReleaseJobsResponse> {
    return contract::Error(absl::StatusCode::kNotFound, "NO_SUCH_JOB", "no job 9");
  };
  EXPECT_EQ(Run({"hold", "-q", "42", "43", "--reason", "later"}).out, "42\n");
  EXPECT_THAT(held.job_ids(), ElementsAre(42u, 43u));
  EXPECT_EQ(held.reason(), "later");
  const Outcome outcome = Run({"release", "9"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "muster: no job 9 [NO_SUCH_JOB]\n");
  EXPECT_EQ(Run({"hold"}).code, 2);
}

TEST_F(CommandTest, PlanShowsTheSubmissionAndSubmitsNothing) {
  v1::PlanJobRequest asked;
  v1::PlanJobResponse plans;
  v1::JobPlan* plan = plans.add_plans();
  plan->set_cluster("lab");
  plan->set_submission("#!/bin/bash\n#SBATCH --nodes=1\n");
  plan->mutable_estimated_start_time()->set_seconds(4'102'444'800);
  broker_.plan_job = [&](const v1::PlanJobRequest& request) -> absl::StatusOr<v1::PlanJobResponse> {
    asked = request;
    return plans;
  };
  const Outcome outcome = Run({"plan", "--nodes", "2", "--", "echo", "a"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(asked.spec().nodes(), 2u);
  EXPECT_THAT(outcome.out, HasSubstr("On cluster lab\n"));
  EXPECT_THAT(outcome.out, HasSubstr("Would start 2100-01-01T00:00:00Z"));
  EXPECT_THAT(outcome.out, HasSubstr("\n#SBATCH --nodes=1\n"));
  plan->mutable_estimated_start_time()->set_seconds(1'772'366'400);
  EXPECT_THAT(Run({"plan", "--", "x"}).out, HasSubstr("Would start at once\n"));
  plan->set_submission("# sbatch\n");
  plan->set_shared("# ---- batch.sh\n#!/bin/bash\nset -u\n");
  const std::string own = Run({"plan", "--", "x"}).out;
  EXPECT_THAT(own, AllOf(HasSubstr("# sbatch\n(add --manifest to see what is alike"),
                         Not(HasSubstr("set -u"))));
  EXPECT_THAT(Run({"plan", "-o", "wide", "--", "x"}).out, HasSubstr("batch.sh\n#!/bin/bash\nset"));
  EXPECT_THAT(Run({"plan", "--manifest", "--", "x"}).out, HasSubstr("batch.sh\n#!/bin/bash\nset"));
  EXPECT_EQ(Run({"plan", WriteFile("run: x\nname: filed\n")}).code, 0);
  EXPECT_EQ(asked.spec().name(), "filed");
  plan->clear_estimated_start_time();
  EXPECT_THAT(Run({"plan", "--", "x"}).out,
              HasSubstr("Would start at an unknown time: the cluster gives no estimate"));
  plan->add_checks()->set_result(v1::CHECK_RESULT_FAIL);
  const Outcome failed = Run({"plan", "--", "x"});
  EXPECT_EQ(failed.code, 13);
  EXPECT_THAT(failed.out, HasSubstr("Would not start as it is: see the checks"));
  EXPECT_EQ(Run({"plan"}).code, 2);
  EXPECT_EQ(Run({"plan", "--wait", "--", "x"}).code, 2);
  EXPECT_THAT(submitted_, IsEmpty());
}

TEST_F(CommandTest, WhatAClusterWarnsOfIsALineOfStandardErrorUnlessItIsToBeQuiet) {
  broker_.submit_warnings.resize(2);
  broker_.submit_warnings[0].set_message("on cluster k8s: no claim \x1b[1m");
  broker_.submit_warnings[0].set_remedy("Make it.");
  broker_.submit_warnings[1].set_message("on cluster lab:\nno claim");
  const Outcome outcome = Run({"run", "--", "x"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err,
              HasSubstr("muster: warning: on cluster k8s: no claim \\x1b[1m. Make it.\n"));
  EXPECT_THAT(outcome.err, HasSubstr("muster: warning: on cluster lab: | no claim\n"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("claim")));
  EXPECT_EQ(Run({"run", "-q", "--", "x"}).err, "");
  broker_.submit_jobs = [](const auto&) -> absl::StatusOr<v1::SubmitJobsResponse> {
    v1::SubmitJobsResponse response;
    response.add_responses()->set_job_id(1);
    response.add_responses()->set_job_id(2);
    return response;
  };
  const std::string twice = Run({"submit", WriteFile("run: x\n---\nrun: y\n")}).err;
  EXPECT_THAT(twice, HasSubstr("on cluster k8s"));
  EXPECT_EQ(twice.find("on cluster lab"), twice.rfind("on cluster lab")) << "once for both jobs";
}

TEST_F(CommandTest, APlanTellsOfALongSubmissionOnlyItsLengthUnlessItIsAskedFor) {
  v1::PlanJobResponse plans;
  v1::JobPlan* plan = plans.add_plans();
  plan->set_cluster("k8s");
  std::string manifest = "kind: \"Job\"\n";
  for (int i = 0; i < 24; ++i) manifest += "  line\n";
  plan->set_submission(manifest);
  broker_.plan_job = [&](const v1::PlanJobRequest&) -> absl::StatusOr<v1::PlanJobResponse> {
    return plans;
  };
  const std::string page = Run({"plan", "--", "x"}).out;
  EXPECT_THAT(page, HasSubstr("25 lines; add --manifest to see them\n"));
  EXPECT_THAT(page, Not(HasSubstr("kind")));
  for (const char* flag : {"--manifest", "-owide"})
    EXPECT_THAT(Run({"plan", flag, "--", "x"}).out, HasSubstr(manifest)) << flag;
  for (const char* format : {"json", "jsonl", "yaml"}) {
    const std::string whole = Run({"plan", "--manifest", "-o", format, "--", "x"}).out;
    EXPECT_THAT(whole, HasSubstr("submission")) << format;
    EXPECT_THAT(whole, HasSubstr("  line")) << format;
  }
  for (const char* names : {"-oname", "-q"}) {
    const Outcome refused = Run({"plan", "--manifest", names, "--", "x"});
    EXPECT_EQ(refused.code, 2) << names;
    EXPECT_THAT(refused.err, HasSubstr("--manifest: -q and -o name print the clusters' names"));
  }
}

// A Job as an agent of Kubernetes would submit it.
constexpr char kJobManifest[] = R"(apiVersion: "batch/v1"
kind: "Job"
metadata:
  labels:
    kueue.x-k8s.io/queue-name: "team\x1b[1m"
  name: "plan-1-1"
  namespace: "runs"
spec:
  completions: 2
  template:
    spec:
      containers:
        - image: "debian:12"
          resources:
            limits:
              memory: "1610612736"
              nvidia.com/gpu: "4"
            requests:
              cpu: "1500m"
              memory: "1610612736"
              nvidia.com/gpu: "4"
          volumeMounts:
            - mountPath: "/muster/run"
              name: "muster-run"
            - mountPath: "/data"
              name: "volume-0"
              readOnly: true
              subPath: "sets/a"
            - mountPath: "/scratch"
              name: "volume-1"
      volumes:
        - name: "muster-run"
          secret:
            secretName: "plan-1-1"
        - name: "volume-0"
          persistentVolumeClaim:
            claimName: "data-claim"
        - emptyDir:
            {}
          name: "volume-1"
)";

TEST_F(CommandTest, APlanShowsOfAManifestWhatTellsJobsApart) {
  v1::PlanJobResponse plans;
  v1::JobPlan* plan = plans.add_plans();
  plan->set_cluster("k8s");
  plan->set_submission(std::string(kJobManifest) +
                       "---\nkind: \"Secret\"\n---\nkind: \"Service\"\n");
  broker_.plan_job = [&](const v1::PlanJobRequest&) -> absl::StatusOr<v1::PlanJobResponse> {
    return plans;
  };
  EXPECT_THAT(Run({"plan", "--", "x"}).out,
              EndsWith("Submission\n"
                       "  Job         runs/plan-1-1\n"
                       "  With its    Secret, Service\n"
                       "  Image       debian:12\n"
                       "  Pods        2\n"
                       "  Requests    cpu 1.5, memory 1.5Gi, nvidia.com/gpu 4\n"
                       "  Limits      memory 1.5Gi, nvidia.com/gpu 4\n"
                       "  Queue       team\\x1b[1m\n"
                       "  Volume      persistentVolumeClaim data-claim at /data, of it sets/a, "
                       "read-only\n"
                       "  Volume      emptyDir at /scratch\n"
                       "(its manifest has 44 lines; add --manifest to see them)\n"));
  EXPECT_THAT(Run({"plan", "--manifest", "--", "x"}).out, HasSubstr(plan->submission()));
}

TEST_F(CommandTest, APlanWhoseManifestIsCutOrOddShowsWhatItCan) {
  v1::PlanJobResponse plans;
  v1::JobPlan* plan = plans.add_plans();
  plan->set_cluster("k8s");
  broker_.plan_job = [&](const v1::PlanJobRequest&) -> absl::StatusOr<v1::PlanJobResponse> {
    return plans;
  };
  // A plan that was cut is no Job that anybody could judge by.
  plan->set_submission(std::string(kJobManifest) + "# ... cut here: the whole has 300000 bytes\n");
  EXPECT_THAT(Run({"plan", "--", "x"}).out, HasSubstr("lines; add --manifest to see them"));
  for (const char* odd : {"kind: Job\n---\n[]\n", "kind: {}\n---\nx\n", "[a]\n---\nb\n",
                          "kind: Job\nspec: {template: {spec: {containers: [x]}}}\n---\nx\n"}) {
    plan->set_submission(odd);
    EXPECT_EQ(Run({"plan", "--", "x"}).code, 0) << odd;
  }
}

}  // namespace
}  // namespace muster::cli
