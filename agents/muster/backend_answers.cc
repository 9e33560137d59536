// Answers the questions of people for the backend.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "absl/time/clock.h"
#include "agents/core/proto_time.h"
#include "agents/muster/backend.h"
#include "agents/muster/inventory.h"
#include "agents/muster/translate.h"
#include "contract/checks.h"
#include "contract/text.h"

namespace muster::remote {
namespace {

// Bounds the time of one answer, beside that of each call.
constexpr size_t kMaxDescribed = 32;

// Returns a job that only asks whether it would be accepted.
v1::SubmitJobRequest Trial(const RemoteConfig& config) {
  v1::JobSpec spec;
  spec.mutable_command()->mutable_argv()->add_args("true");
  v1::SubmitJobRequest request;
  *request.mutable_spec() = SpecThere(config, spec, "");
  request.set_validate_only(true);
  return request;
}

v1::ClusterCheck Refused(const std::string& words) {
  return contract::MakeCheck(v1::CHECK_CODE_TRIAL, v1::CHECK_RESULT_FAIL,
                             "the job at the remote broker", words,
                             "change the job as it says, or choose another cluster");
}

// Turns the first of the remote broker's plans into a plan, and names the clusters of the others.
v1::JobPlan PlanHere(const v1::PlanJobResponse& plans) {
  v1::JobPlan plan = plans.plans(0);
  std::vector<std::string> others;
  for (int i = 1; i < plans.plans_size(); ++i) others.push_back(plans.plans(i).cluster());
  plan.set_submission(
      fmt::format("# a job of the remote broker, which would place it on {}{}\n{}", plan.cluster(),
                  others.empty() ? "" : fmt::format(" (or on {})", fmt::join(others, ", ")),
                  plan.submission()));
  for (v1::ClusterCheck& check : *plan.mutable_checks())
    check.set_subject(fmt::format("{}: {}", plan.cluster(), check.subject()));
  if (!plan.has_estimated_start_time() && plan.has_start_estimate())
    *plan.mutable_estimated_start_time() = plan.start_estimate().time();
  // This broker names the cluster, and makes its own estimate.
  for (v1::SubmitWarning& warning : *plan.mutable_warnings()) warning.clear_cluster();
  plan.clear_cluster();
  plan.clear_start_estimate();
  return plan;
}

}  // namespace

absl::Status RemoteBackend::Probe() {
  return connection_->For("WhoAmI").WhoAmI(v1::WhoAmIRequest()).status();
}

absl::StatusOr<v1::Inventory> RemoteBackend::Inventory() {
  const absl::StatusOr<v1::WhoAmIResponse> who =
      connection_->For("WhoAmI").WhoAmI(v1::WhoAmIRequest());
  if (!who.ok()) return who.status();
  if (who->broker_instance().empty()) {
    return absl::FailedPreconditionError(
        "the remote broker does not tell its instance, without which jobs could go round in a "
        "circle: it is of an earlier release; install this one there");
  }
  const absl::StatusOr<std::vector<v1::Cluster>> clusters = connection_->Clusters();
  if (!clusters.ok()) return clusters.status();
  v1::Inventory inventory = InventoryOf(config_, *who, *clusters);
  *inventory.mutable_observed_at() = agents::ToProto(absl::Now());
  return inventory;
}

v1::ClusterChecks RemoteBackend::Check() {
  const absl::StatusOr<v1::WhoAmIResponse> who =
      connection_->For("WhoAmI").WhoAmI(v1::WhoAmIRequest());
  if (!who.ok()) return ChecksOf(config_, who, who.status(), who.status());
  const absl::Status trial = connection_->For("SubmitJob").SubmitJob(Trial(config_)).status();
  return ChecksOf(config_, who, trial, connection_->Clusters());
}

absl::StatusOr<v1::ClusterDetails> RemoteBackend::Describe(bool with_jobs) {
  const absl::StatusOr<std::vector<v1::Cluster>> clusters = connection_->Clusters();
  if (!clusters.ok()) return absl::UnavailableError(clusters.status().message());
  v1::ClusterDetails details;
  *details.mutable_observed_at() = agents::ToProto(absl::Now());
  size_t asked = 0;
  for (const v1::Cluster& cluster : *clusters) {
    if (!IsUsed(config_, cluster.name()) || cluster.state() != v1::CLUSTER_STATE_CONNECTED)
      continue;
    if (++asked > kMaxDescribed) break;
    v1::DescribeClusterRequest request;
    request.set_name(cluster.name());
    request.set_without_jobs(!with_jobs);
    const auto answer = connection_->For("DescribeCluster").DescribeCluster(request);
    if (answer.ok()) AddDetails(cluster.name(), answer->details(), &details);
  }
  return details;
}

absl::StatusOr<v1::JobPlan> RemoteBackend::Plan(const v1::JobSpec& spec, const std::string& user) {
  v1::JobPlan plan;
  if (const absl::Status good = CheckSpec(spec); !good.ok()) {
    *plan.add_checks() = Refused(std::string(ToStd(good.message())));
    return plan;
  }
  v1::PlanJobRequest request;
  *request.mutable_spec() = SpecThere(config_, spec, user);
  // The launch sends the files, so they are not there yet.
  request.mutable_spec()->clear_uploads();
  const absl::StatusOr<v1::PlanJobResponse> plans = connection_->For("PlanJob").PlanJob(request);
  if (plans.ok() && !plans->plans().empty()) return PlanHere(*plans);
  if (plans.ok() || absl::IsUnavailable(plans.status()) ||
      absl::IsDeadlineExceeded(plans.status()) || absl::IsUnauthenticated(plans.status())) {
    return absl::UnavailableError(plans.ok() ? "the remote broker has no plan for it"
                                             : plans.status().message());
  }
  *plan.add_checks() = Refused(std::string(ToStd(plans.status().message())));
  return plan;
}

}  // namespace muster::remote
