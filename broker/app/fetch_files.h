// The files of a run on its cluster, from its agent.
#ifndef MUSTER_BROKER_APP_FETCH_FILES_H_
#define MUSTER_BROKER_APP_FETCH_FILES_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "muster/v1/files_service.pb.h"

namespace muster::broker {

// INVALID_ARGUMENT, PERMISSION_DENIED; AskForFiles tells whether there is such a run. Does not
// block.
absl::Status CheckFetch(const Principal& principal, const v1::FetchFilesRequest& request);

// Has the agent of the run's cluster send its files to whoever holds the ticket (fetches.h). `done`
// is called once, on any thread: OK once the agent has agreed. NOT_FOUND: no such job, run or rank;
// FAILED_PRECONDITION, RUN_HAS_NO_FILES or CLUSTER_SENDS_NO_FILES; others: AskCluster's. Blocks for
// the store; on the readers.
void AskForFiles(const Principal& principal, const Services& services,
                 const v1::FetchFilesRequest& request, const std::string& ticket,
                 std::function<void(absl::Status)> done);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_FETCH_FILES_H_
