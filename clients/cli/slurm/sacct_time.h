// Times as users of sacct give them.
#ifndef MUSTER_CLIENTS_CLI_SLURM_SACCT_TIME_H_
#define MUSTER_CLIENTS_CLI_SLURM_SACCT_TIME_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster::cli {

// A date, a time or both in any order, in the local time; blanks, '-' and 'T' may stand between.
// Dates: "2026-11-21", "11/21[/26]", "11.21[.26]", "1121[26]", "today", "tomorrow"; without a year
// the latest such day up to the end of this month. Times: "03:22[:53][am|pm]", "midnight", "noon",
// "fika", "teatime"; without a date today. Besides "now", "now-2hours", "now+1days" (seconds if
// there is no unit). INVALID_ARGUMENT: none of these.
absl::StatusOr<absl::Time> ParseSacctTime(std::string_view text, absl::Time now);

// Midnight of the same day, local time.
absl::Time StartOfDay(absl::Time now);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_SACCT_TIME_H_
