// Remarks about clusters that a command line or a file names. A broker that cannot be asked gives
// none: a remark is not worth an error.
#ifndef MUSTER_CLIENTS_CLI_KNOWN_CLUSTERS_H_
#define MUSTER_CLIENTS_CLI_KNOWN_CLUSTERS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "clients/cli/verbs.h"
#include "clients/cpp/job_file_result.h"

namespace muster::cli {

// Says which of the names no cluster of the broker's has.
void NoteUnknownClusters(Session& session, const std::vector<std::string>& names);

// Says where the tasks of a file take a cluster for one of another kind than it is; with --strict
// that is INVALID_ARGUMENT.
absl::Status CheckKinds(Session& session, const client::JobFile& jobs);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_KNOWN_CLUSTERS_H_
