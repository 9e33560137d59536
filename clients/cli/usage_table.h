// The table of the verb usage.
#ifndef MUSTER_CLIENTS_CLI_USAGE_TABLE_H_
#define MUSTER_CLIENTS_CLI_USAGE_TABLE_H_

#include <string>

#include "clients/cli/views.h"
#include "muster/v1/usage_service.pb.h"

namespace muster::cli {

// A row for each row of the answer, and the total below if they are not exactly one. With GPU types
// in wide tables.
std::string UsageTable(const v1::GetUsageRequest& request, const v1::GetUsageResponse& response,
                       const Style& style);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_USAGE_TABLE_H_
