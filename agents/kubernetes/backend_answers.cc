// What people ask of the cluster: a preflight, its details, a plan.
#include <string>
#include <utility>

#include "agents/core/job_storage.h"
#include "agents/kubernetes/backend.h"
#include "agents/kubernetes/preflight.h"
#include "agents/kubernetes/yaml_text.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

// What plans call the run whose job has no number yet; with Muster's name in front it would be one.
constexpr char kPlannedRun[] = "plan-1-1";

v1::ClusterCheck MakeCheck(std::string subject, v1::CheckResult result, std::string seen,
                           std::string remedy) {
  v1::ClusterCheck check;
  check.set_subject(std::move(subject));
  check.set_result(result);
  check.set_seen(std::move(seen));
  check.set_remedy(std::move(remedy));
  return check;
}

// The user's words may hold what nobody else is to read.
Json WithoutContents(Json secret) {
  for (auto& [key, value] : secret["data"].items())
    value = fmt::format("({} bytes in base64)", value.get<std::string>().size());
  return secret;
}

std::string ManifestOf(const RunObjects& objects) {
  std::string text = YamlOf(objects.job) + "---\n" + YamlOf(WithoutContents(objects.secret));
  for (const std::optional<Json>& more : {objects.service, objects.pod_group}) {
    if (more.has_value()) text += "---\n" + YamlOf(*more);
  }
  return text;
}

v1::ClusterCheck CheckDryRun(const absl::StatusOr<ApiAnswer>& answer) {
  if (!answer.ok()) {
    return MakeCheck("dry run", v1::CHECK_RESULT_WARN,
                     "not known: " + std::string(ToStd(answer.status().message())), "Try again.");
  }
  if (answer->ok())
    return MakeCheck("dry run", v1::CHECK_RESULT_OK, "the API server would take the Job", "");
  return MakeCheck("dry run", v1::CHECK_RESULT_FAIL,
                   std::string(ToStd(RefusalOf(*answer, "create the Job").message())),
                   "Correct the job.");
}

}  // namespace

absl::StatusOr<v1::Inventory> KubernetesBackend::Inventory() {
  absl::StatusOr<v1::Inventory> inventory = view_.Inventory();
  if (!inventory.ok()) return inventory;
  SweepAbandoned();
  if (const absl::Status health = logs_.health(); !health.ok())
    inventory->add_warnings(std::string(ToStd(health.message())));
  return inventory;
}

v1::ClusterChecks KubernetesBackend::Check() {
  return kubernetes::Check(config_, &api_, view_.KnownIdentity());
}

absl::StatusOr<v1::ClusterDetails> KubernetesBackend::Describe() { return view_.Describe(); }

absl::StatusOr<v1::JobPlan> KubernetesBackend::Plan(const v1::JobSpec& spec,
                                                    const std::string& user) {
  v1::Assignment planned;
  planned.set_run_key(kPlannedRun);
  planned.set_user(user);
  *planned.mutable_spec() = spec;
  v1::JobPlan plan;
  const absl::StatusOr<RunObjects> objects = Prepare(planned);
  if (!objects.ok()) {
    *plan.add_checks() = MakeCheck("the job", v1::CHECK_RESULT_FAIL,
                                   agent::WhatIsWrong(objects.status()), "Correct the job.");
    return plan;
  }
  plan.set_submission(ManifestOf(*objects));
  *plan.add_checks() = CheckDryRun(calls_.TryJob(*objects));
  const std::optional<std::string> waits = view_.WaitsFor(spec);
  *plan.add_checks() = MakeCheck(
      "room", v1::CHECK_RESULT_OK,
      waits.has_value() ? "it would wait: " + *waits : "nothing stands against its start", "");
  return plan;
}

}  // namespace muster::kubernetes
