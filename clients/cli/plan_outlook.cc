#include "clients/cli/plan_outlook.h"

#include <algorithm>

#include "clients/cli/text.h"

namespace muster::cli {
namespace {

// Clocks differ a little, and a plan takes a moment.
constexpr absl::Duration kAtOnce = absl::Seconds(2);

}  // namespace

bool HasFailed(const v1::JobPlan& plan) {
  return std::any_of(plan.checks().begin(), plan.checks().end(),
                     [](const auto& check) { return check.result() == v1::CHECK_RESULT_FAIL; });
}

bool StartsAtOnce(const v1::JobPlan& plan, absl::Time now) {
  return !HasFailed(plan) && plan.has_estimated_start_time() &&
         ToTime(plan.estimated_start_time()) <= now + kAtOnce;
}

}  // namespace muster::cli
