#include "agents/core/launch_refusal.h"

#include <utility>

namespace muster::agents {

LaunchOutcome RefusedAs(v1::FailureClass failure_class, const std::string& message,
                        const std::string& suggestion, v1::Evidence evidence) {
  LaunchOutcome outcome;
  outcome.kind = LaunchOutcome::Kind::kRefused;
  outcome.failure.set_failure_class(failure_class);
  outcome.failure.set_message(message);
  outcome.failure.set_suggestion(suggestion);
  outcome.failure.set_retriable(failure_class == v1::FAILURE_CLASS_INFRA);
  outcome.evidence = std::move(evidence);
  return outcome;
}

}  // namespace muster::agents
