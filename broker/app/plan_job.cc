#include "broker/app/plan_job.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "broker/app/ask_cluster.h"
#include "broker/app/project_limits.h"
#include "broker/app/rights.h"
#include "broker/app/run_secrets.h"
#include "broker/app/submit_jobs.h"
#include "broker/app/submit_warnings.h"
#include "broker/engine/engine.h"
#include "contract/checks.h"
#include "contract/errors.h"
#include "contract/lacks.h"
#include "contract/sentences.h"
#include "contract/text.h"

namespace muster::broker {
namespace {

// Most plans in one answer, as the proto states.
constexpr size_t kMaxPlans = 10;

// The state of one call.
struct Planning {
  Services services;
  absl::Time client_deadline;
  agent::v1::PlanQuestion question;
  PlanJobDone done;
  v1::PlanJobResponse response = {};
};

// Makes a failed check in place of a plan.
v1::JobPlan CouldNotTell(const std::string& cluster, const absl::Status& why) {
  v1::JobPlan plan;
  plan.set_cluster(cluster);
  *plan.add_checks() = contract::NoAnswerCheck(cluster, ToStd(why.message()));
  return plan;
}

// Returns what the cluster's agent says is wrong with the pool; null if nothing.
const v1::ClusterIssue* FindPoolIssue(const v1::Inventory& inventory) {
  for (const v1::ClusterIssue& issue : inventory.issues()) {
    const bool is_shut = issue.code() == v1::CLUSTER_ISSUE_CODE_POOL_MISSING ||
                         issue.code() == v1::CLUSTER_ISSUE_CODE_POOL_FORBIDDEN;
    if (is_shut && issue.pool() == inventory.pools(0).name()) return &issue;
  }
  return nullptr;
}

// `cluster` is one that can take the job only later, from ClustersReply; `lacks` is its obstacle.
v1::ClusterCheck PoolCheck(const v1::Cluster& cluster, contract::LackCode lacks) {
  return contract::PoolCheck({.code = lacks,
                              .kind = cluster.kind(),
                              .inventory = &cluster.inventory(),
                              .pool = &cluster.inventory().pools(0)},
                             cluster.name(), FindPoolIssue(cluster.inventory()));
}

// Puts a check before those of the cluster itself.
void PutInFront(v1::ClusterCheck check, v1::JobPlan* plan) {
  auto* checks = plan->mutable_checks();
  *checks->Add() = std::move(check);
  for (int i = checks->size() - 1; i > 0; --i) checks->SwapElements(i, i - 1);
}

// A cluster with as many runs as its agent takes does not know of the jobs that wait for it.
void NoteIfFull(const v1::Cluster& cluster, v1::JobPlan* plan) {
  if (cluster.active_runs() < cluster.max_active_runs()) return;
  plan->clear_estimated_start_time();
  PutInFront(contract::FullCheck(cluster), plan);
}

// The job would wait for the end of the cordon, or for another cluster.
void NoteIfCordoned(const v1::Cluster& cluster, v1::JobPlan* plan) {
  if (!cluster.has_cordon()) return;
  plan->clear_estimated_start_time();
  PutInFront(contract::CordonCheck(cluster), plan);
}

// Returns the warnings of a submit of the job: the agent's own ones, or the checks that warned.
std::vector<v1::SubmitWarning> WarningsOf(const v1::JobPlan& plan) {
  std::vector<v1::SubmitWarning> warnings(plan.warnings().begin(), plan.warnings().end());
  if (warnings.empty()) {
    for (const v1::ClusterCheck& check : plan.checks()) {
      if (check.result() == v1::CHECK_RESULT_WARN)
        warnings.push_back(contract::MakeWarning(v1::SUBMIT_WARNING_CODE_CHECK, check));
    }
  }
  if (warnings.size() > kMaxWarnings) warnings.resize(kMaxWarnings);
  for (v1::SubmitWarning& warning : warnings) {
    contract::SetCluster(plan.cluster(), &warning);
    BoundWarning(&warning);
  }
  return warnings;
}

void TellWarnings(v1::JobPlan* plan) {
  const std::vector<v1::SubmitWarning> warnings = WarningsOf(*plan);
  plan->mutable_warnings()->Assign(warnings.begin(), warnings.end());
}

// Makes plans that have only the pool's check, for namespaces that do not exist or are closed to
// the agent: the cluster's server would say only that. Moves the other clusters to `others`.
std::vector<v1::JobPlan> PlansOfShutNamespaces(const core::ClustersReply& reply,
                                               std::vector<v1::Cluster>* others) {
  std::vector<v1::JobPlan> plans;
  for (const v1::Cluster& cluster : reply.clusters) {
    const auto why = reply.not_now.find(cluster.name());
    if (why == reply.not_now.end() || FindPoolIssue(cluster.inventory()) == nullptr) {
      others->push_back(cluster);
      continue;
    }
    v1::JobPlan& plan = plans.emplace_back();
    plan.set_cluster(cluster.name());
    *plan.add_checks() = PoolCheck(cluster, why->second);
    TellWarnings(&plan);
  }
  return plans;
}

// Adds to the answer of an agent what the broker knows of the cluster.
v1::JobPlan Completed(absl::StatusOr<v1::JobPlan> answer, const v1::Cluster& cluster,
                      const core::ClustersReply& reply) {
  v1::JobPlan plan =
      answer.ok() ? *std::move(answer) : CouldNotTell(cluster.name(), answer.status());
  plan.clear_start_estimate();
  if (const auto found = reply.estimates.find(cluster.name()); found != reply.estimates.end())
    *plan.mutable_start_estimate() = found->second;
  if (const auto why = reply.not_now.find(cluster.name()); why != reply.not_now.end())
    PutInFront(PoolCheck(cluster, why->second), &plan);
  NoteIfFull(cluster, &plan);
  NoteIfCordoned(cluster, &plan);
  TellWarnings(&plan);
  return plan;
}

void AskClusters(const std::shared_ptr<Planning>& planning, core::ClustersReply reply) {
  std::vector<v1::Cluster> clusters;
  // No job goes there now: they come last.
  std::vector<v1::JobPlan> shut = PlansOfShutNamespaces(reply, &clusters);
  if (reply.clusters.empty()) {
    return planning->done(contract::Error(absl::StatusCode::kUnavailable, "NO_CLUSTER_CONNECTED",
                                          "no cluster that could take the job is connected"));
  }
  AskPlans(planning->services, clusters, planning->question, kPlanPatience,
           planning->client_deadline,
           [planning, clusters, shut, reply = std::move(reply)](JobPlans plans) {
             for (size_t i = 0; i < plans.size(); ++i)
               *planning->response.add_plans() = Completed(std::move(plans[i]), clusters[i], reply);
             for (const v1::JobPlan& plan : shut) *planning->response.add_plans() = plan;
             planning->done(std::move(planning->response));
           });
}

// `accepted` is the answer that a submit would get. A job that only published facts speak against
// is planned nevertheless, because the plans of its clusters say more.
void FindClusters(const std::shared_ptr<Planning>& planning, const absl::Status& accepted) {
  const auto info = contract::GetErrorInfo(accepted);
  const bool is_placeless = info.has_value() && info->reason() == "CANNOT_BE_PLACED";
  if (!accepted.ok() && !is_placeless) return planning->done(accepted);
  core::ListClusters which;
  which.that_could_take = std::make_shared<const v1::JobSpec>(planning->question.spec());
  which.max_clusters = kMaxPlans;
  which.now = absl::Now();
  which.limits = ProjectsOf(planning->services)->places();
  core::ClustersReply reply = core::List(which, *planning->services.engine->clusters());
  if (!accepted.ok() && reply.clusters.empty()) return planning->done(accepted);
  AskClusters(planning, std::move(reply));
}

}  // namespace

void PlanJob(const Principal& principal, const Services& services,
             const v1::PlanJobRequest& request, absl::Time client_deadline, PlanJobDone done) {
  v1::SubmitJobRequest asked;
  asked.set_validate_only(true);
  if (request.has_spec()) *asked.mutable_spec() = request.spec();
  // The plan is that of the job at its turn, after the jobs of the same submit that come before it.
  if (asked.spec().depends_on_size() > 0) {
    auto& others = *asked.mutable_spec()->mutable_depends_on();
    others.erase(std::remove_if(others.begin(), others.end(),
                                [](const auto& one) { return one.request() != 0; }),
                 others.end());
  }
  absl::StatusOr<core::Submit> submit = ToSubmit(principal, services, std::move(asked));
  if (!submit.ok()) return done(submit.status());
  if (absl::Status status = CheckJobSecrets(principal, services, *submit); !status.ok())
    return done(status);
  auto planning =
      std::make_shared<Planning>(Planning{services, client_deadline, {}, std::move(done)});
  *planning->question.mutable_spec() = *submit->items.front().spec;
  planning->question.mutable_spec()->clear_depends_on();
  planning->question.set_user(principal.user);
  services.engine->Submit(*std::move(submit),
                          [planning](const absl::StatusOr<v1::SubmitJobsResponse>& result) {
                            FindClusters(planning, result.status());
                          });
}

}  // namespace muster::broker
