#include "clients/cli/estimates.h"

#include <fmt/format.h>

#include "clients/cli/text.h"
#include "contract/counted.h"
#include "contract/units.h"

namespace muster::cli {
namespace {

// A start that is so near is one at once: agents look at their clusters every few seconds.
constexpr absl::Duration kSoon = absl::Seconds(5);

}  // namespace

std::string EstimateText(const v1::StartEstimate& estimate, absl::Time now) {
  const bool has_interval = estimate.has_earliest() && estimate.has_latest();
  std::string text =
      ToTime(estimate.time()) <= now + kSoon
          ? "at once"
          : fmt::format("{} ({})", Rfc3339(estimate.time()), Ago(estimate.time(), now));
  if (has_interval && ToTime(estimate.latest()) > now + kSoon) {
    text += fmt::format(", as a rule from {} to {}", Rfc3339(estimate.earliest()),
                        Rfc3339(estimate.latest()));
  }
  return text;
}

std::string EstimateErrorsText(const v1::EstimateErrors& errors) {
  return fmt::format(
      "{}; mean wait {}, mean error of the estimates {}", contract::Counted(errors.runs(), "run"),
      contract::FormatDuration(absl::Floor(ToDuration(errors.mean_wait()), absl::Seconds(1))),
      contract::FormatDuration(absl::Floor(ToDuration(errors.mean_error()), absl::Seconds(1))));
}

}  // namespace muster::cli
