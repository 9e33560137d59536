// Looking for processes of runs in /proc.
//
// Uses nothing but the standard library: the supervisor links it.
#ifndef MUSTER_AGENTS_MACHINES_PROCESS_SEARCH_H_
#define MUSTER_AGENTS_MACHINES_PROCESS_SEARCH_H_

#include <map>
#include <string>

#include "agents/machines/run_records.h"

namespace muster::machines {

// Lists the supervisors of this user that live now, by directory: what their runs' claims say, or
// would say if they were still there.
std::map<std::string, Claim> ListSupervisors();

// Kills every process that has this variable, "NAME=value", in its environment.
void KillProcessesWith(const std::string& variable);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_PROCESS_SEARCH_H_
