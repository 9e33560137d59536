// Times as users of sacct give them.
#ifndef MUSTER_CLIENTS_CLI_SLURM_SACCT_TIME_H_
#define MUSTER_CLIENTS_CLI_SLURM_SACCT_TIME_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster::cli {

// "now", "today", "midnight", "noon", "now-2hours", "now+1days" (seconds if there is no unit),
// "2026-11-21", "2026-11-21T03:22[:53]", "11/21[/26]", "11/21/26-03:22[:53]", "03:22[:53]"; in the
// local time. INVALID_ARGUMENT: none of these.
absl::StatusOr<absl::Time> ParseSacctTime(std::string_view text, absl::Time now);

// Midnight of the same day, local time.
absl::Time StartOfDay(absl::Time now);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_SACCT_TIME_H_
