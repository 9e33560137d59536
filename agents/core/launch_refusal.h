// A launch that the cluster refuses for good.
//
// Pure; any thread.
#ifndef MUSTER_AGENTS_CORE_LAUNCH_REFUSAL_H_
#define MUSTER_AGENTS_CORE_LAUNCH_REFUSAL_H_

#include "agents/core/backend.h"

namespace muster::agents {

// A fault of the cluster may be gone at the next run; another class's comes again. `evidence` says
// who has refused; its detail is the failure's sentence, unless it has one.
LaunchOutcome RefusedAs(v1::Failure failure, v1::Evidence evidence);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_LAUNCH_REFUSAL_H_
