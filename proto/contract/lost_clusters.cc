#include "contract/lost_clusters.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "contract/errors.h"
#include "contract/rfc3339.h"

namespace muster::contract {
namespace {

struct PolicyRow {
  v1::ClusterLossPolicy policy;
  std::string_view name;
};
constexpr auto kPolicies = std::to_array<PolicyRow>({
    {v1::CLUSTER_LOSS_POLICY_WAIT, "wait"},
    {v1::CLUSTER_LOSS_POLICY_FAIL_OVER_WHEN_FENCED, "fail_over_when_fenced"},
    {v1::CLUSTER_LOSS_POLICY_FAIL_OVER_NOW, "fail_over_now"},
});

}  // namespace

void CheckClusterLoss(const v1::JobSpec& spec, FieldErrors* errors) {
  if (v1::ClusterLossPolicy_IsValid(spec.on_cluster_loss())) return;
  errors->Add("on_cluster_loss",
              fmt::format("{} is no policy; use WAIT, FAIL_OVER_WHEN_FENCED or FAIL_OVER_NOW",
                          static_cast<int>(spec.on_cluster_loss())));
}

std::string_view Name(v1::ClusterLossPolicy policy) {
  for (const PolicyRow& row : kPolicies) {
    if (row.policy == policy) return row.name;
  }
  return kPolicies.front().name;
}

v1::ClusterLossPolicy ClusterLossPolicyOf(std::string_view name) {
  for (const PolicyRow& row : kPolicies) {
    if (row.name == name) return row.policy;
  }
  return v1::CLUSTER_LOSS_POLICY_UNSPECIFIED;
}

std::string GivenUp(std::string_view cluster, absl::Time last_heard) {
  return fmt::format("no word from the agent of cluster \"{}\" since {}", cluster,
                     Rfc3339(last_heard));
}

v1::StateReason ClusterLost(v1::StateReason no_word, absl::Time until) {
  no_word.set_code(v1::STATE_REASON_CODE_CLUSTER_LOST);
  no_word.mutable_until()->set_seconds(absl::ToUnixSeconds(until));
  no_word.mutable_until()->set_nanos(static_cast<int32_t>(
      absl::ToInt64Nanoseconds(until - absl::FromUnixSeconds(no_word.until().seconds()))));
  no_word.set_message(fmt::format("another run follows from {} on, unless its cluster is heard; {}",
                                  Rfc3339(until), no_word.message()));
  return no_word;
}

}  // namespace muster::contract
