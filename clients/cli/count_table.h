// Counts of jobs as rows.
#ifndef MUSTER_CLIENTS_CLI_COUNT_TABLE_H_
#define MUSTER_CLIENTS_CLI_COUNT_TABLE_H_

#include <string>

#include "clients/cli/views.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::cli {

// A row for each group, the largest first, and the total below if there are several.
std::string CountTable(const v1::CountJobsRequest& request, const v1::CountJobsResponse& response,
                       const Style& style);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_COUNT_TABLE_H_
