// A launch that the cluster refuses for good.
//
// Pure; any thread.
#ifndef MUSTER_AGENTS_CORE_LAUNCH_REFUSAL_H_
#define MUSTER_AGENTS_CORE_LAUNCH_REFUSAL_H_

#include <string>

#include "agents/core/backend.h"

namespace muster::agents {

// A fault of the cluster may be gone at the next run; another class's comes again. `evidence` says
// who has refused.
LaunchOutcome RefusedAs(v1::FailureClass failure_class, const std::string& message,
                        const std::string& suggestion, v1::Evidence evidence);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_LAUNCH_REFUSAL_H_
