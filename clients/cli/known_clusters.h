// The broker's clusters, and remarks about those that a command line or a file names.
#ifndef MUSTER_CLIENTS_CLI_KNOWN_CLUSTERS_H_
#define MUSTER_CLIENTS_CLI_KNOWN_CLUSTERS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clients/cli/verbs.h"
#include "clients/cpp/client.h"
#include "clients/cpp/job_file_result.h"
#include "muster/v1/cluster.pb.h"

namespace muster::cli {

// All clusters, by name.
absl::StatusOr<std::map<std::string, v1::Cluster>> AllClusters(client::Client& client);

// Says which of the names no cluster of the broker's has.
// A broker that cannot be asked gives no remark: it is not worth an error.
void NoteUnknownClusters(Session& session, const std::vector<std::string>& names);

// Says where the tasks of a file take a cluster for one of another kind than it is; with --strict
// that is INVALID_ARGUMENT.
absl::Status CheckKinds(Session& session, const client::JobFile& jobs);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_KNOWN_CLUSTERS_H_
