#include "contract/awaited.h"

#include <string_view>

#include "contract/failure_causes.h"
#include "contract/units.h"
#include "fmt/format.h"

namespace muster::contract {

std::string AwaitedClaimRemedy(bool exists, absl::Duration patience) {
  std::string_view advice = "Make it, or name another.";
  if (exists) advice = RemedyFor(FailureCause::kClaimUnbound);
  advice.remove_suffix(1);
  return fmt::format(
      "{}: the run waits for it{} and fails then.", advice,
      patience == absl::ZeroDuration() ? "" : " for " + contract::FormatDuration(patience));
}

}  // namespace muster::contract
