// Tells the errors of the broker and the backend that an agent should wait out from those that it
// cannot.
#ifndef MUSTER_AGENTS_CORE_LINK_REFUSAL_H_
#define MUSTER_AGENTS_CORE_LINK_REFUSAL_H_

#include <string>

#include "absl/status/status.h"

namespace muster::agents {

// Returns the reason of its ErrorInfo; empty if it has none.
std::string ReasonOf(const absl::Status& status);
// Returns whether no waiting heals it; an operator has to.
bool IsFinal(const absl::Status& status);
// Returns whether the broker has refused the agent, which may heal.
bool IsRefusal(const absl::Status& status);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_LINK_REFUSAL_H_
