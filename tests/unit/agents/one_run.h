// Gives the verbs of a backend for one run alone, and the step that only some backends have.
#ifndef MUSTER_TESTS_UNIT_AGENTS_ONE_RUN_H_
#define MUSTER_TESTS_UNIT_AGENTS_ONE_RUN_H_

#include <memory>

#include "absl/status/status.h"
#include "agents/core/backend.h"

namespace muster::agents {

inline LaunchOutcome LaunchOne(Backend& backend, const agent::v1::Assignment& assignment) {
  return backend.Launch({std::make_shared<const agent::v1::Assignment>(assignment)}).at(0);
}
inline absl::Status EndOne(Backend& backend, const RunHandle& run) {
  return backend.End({run}).at(0);
}
inline absl::Status HoldOne(Backend& backend, const RunHandle& run, bool held) {
  return backend.Hold({run}, held).at(0);
}
inline absl::Status ForgetOne(Backend& backend, const RunHandle& run) {
  return backend.Forget({run}).at(0);
}
// Allows starts as an agent does, on every kind of cluster.
inline void AllowStarts(Backend& backend) {
  if (const auto allow = backend.capabilities().allow_starts) allow();
}

}  // namespace muster::agents

#endif  // MUSTER_TESTS_UNIT_AGENTS_ONE_RUN_H_
