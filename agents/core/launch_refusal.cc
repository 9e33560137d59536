#include "agents/core/launch_refusal.h"

#include <utility>

namespace muster::agents {

LaunchOutcome RefusedAs(v1::Failure failure, v1::Evidence evidence) {
  LaunchOutcome outcome;
  outcome.kind = LaunchOutcome::Kind::kRefused;
  outcome.failure = std::move(failure);
  outcome.failure.set_retriable(outcome.failure.failure_class() == v1::FAILURE_CLASS_INFRA);
  outcome.evidence = std::move(evidence);
  if (outcome.evidence.detail().empty()) outcome.evidence.set_detail(outcome.failure.message());
  return outcome;
}

}  // namespace muster::agents
