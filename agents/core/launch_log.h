// The lines of the agent's log about launches. Any thread.
#ifndef MUSTER_AGENTS_CORE_LAUNCH_LOG_H_
#define MUSTER_AGENTS_CORE_LAUNCH_LOG_H_

#include "agents/core/agent_core.h"

namespace muster::agents {

// Logs the outcome of a launch.
void LogLaunch(const Launched& launched);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_LAUNCH_LOG_H_
