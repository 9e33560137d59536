// muster sky: the commands that SkyPilot's users know. Each reads its words as SkyPilot's command
// of the same name does, and refuses by name what it cannot honour.
#ifndef MUSTER_CLIENTS_CLI_SKY_VERBS_H_
#define MUSTER_CLIENTS_CLI_SKY_VERBS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clients/cli/verbs.h"

namespace muster::cli {

// Returns the exit code, as in verbs.h.
int Sky(Session& session);

}  // namespace muster::cli

namespace muster::cli::sky {

using Words = std::vector<std::string>;

// `words`: what is behind the command's name.
int Exec(Session& session, const Words& words);
int Queue(Session& session, const Words& words);
int Logs(Session& session, const Words& words);
int Cancel(Session& session, const Words& words);
int Status(Session& session, const Words& words);

// Returns the user to whom the broker counts this user's jobs: on a Unix socket it knows who runs
// this; on loopback everyone is the same user.
absl::StatusOr<std::string> CurrentUser(const Session& session);

// Writes an error and returns its exit code: 1 as SkyPilot has it, and 2 for a wrong usage.
int FailOther(Session& session, const absl::Status& status);
int FailUsage(Session& session, const absl::Status& status);

}  // namespace muster::cli::sky

#endif  // MUSTER_CLIENTS_CLI_SKY_VERBS_H_
