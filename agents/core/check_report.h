// A preflight as text for a terminal.
#ifndef MUSTER_AGENTS_CORE_CHECK_REPORT_H_
#define MUSTER_AGENTS_CORE_CHECK_REPORT_H_

#include <string>

#include "muster/v1/cluster.pb.h"

namespace muster::agents {

// A line for each check, its remedy below it, and how many there were of each kind.
std::string CheckReport(const v1::ClusterChecks& checks);
// Returns whether one has failed.
bool HasFailed(const v1::ClusterChecks& checks);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_CHECK_REPORT_H_
