#include "contract/states.h"

#include <string>

#include "contract/transitions.h"

namespace muster::contract {
namespace {

// A bit for each state that may follow, so that a check is one look-up.
constexpr auto kFollowers = [] {
  std::array<uint32_t, v1::RunState_ARRAYSIZE> followers{};
  for (const RunTransition& transition : kRunTransitions) {
    followers[transition.from] |= 1u << transition.to;
  }
  return followers;
}();
static_assert(v1::RunState_ARRAYSIZE <= 32);

// Drops "RUN_STATE_" and its like; the names live as long as the process.
std::string_view WithoutPrefix(const std::string& name, std::string_view prefix) {
  return name.empty() ? std::string_view("?") : std::string_view(name).substr(prefix.size());
}

}  // namespace

bool IsTerminal(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED ||
         state == v1::JOB_STATE_CANCELED;
}

bool IsTerminal(v1::RunState state) {
  return state == v1::RUN_STATE_SUCCEEDED || state == v1::RUN_STATE_FAILED ||
         state == v1::RUN_STATE_CANCELED || state == v1::RUN_STATE_LOST;
}

bool IsLegal(v1::RunState from, v1::RunState to) {
  if (!v1::RunState_IsValid(from) || !v1::RunState_IsValid(to)) return false;
  return (kFollowers[from] & (1u << to)) != 0;
}

v1::JobState JobStateFor(v1::RunState latest_run) {
  switch (latest_run) {
    case v1::RUN_STATE_ASSIGNED:
    case v1::RUN_STATE_LAUNCHING:
    case v1::RUN_STATE_LAUNCH_UNKNOWN:
    case v1::RUN_STATE_PENDING:
    case v1::RUN_STATE_STARTING:
      return v1::JOB_STATE_PENDING;
    case v1::RUN_STATE_RUNNING:
    case v1::RUN_STATE_FINISHING:
      return v1::JOB_STATE_RUNNING;
    case v1::RUN_STATE_SUSPENDED:
      return v1::JOB_STATE_SUSPENDED;
    case v1::RUN_STATE_SUCCEEDED:
      return v1::JOB_STATE_SUCCEEDED;
    case v1::RUN_STATE_FAILED:
    case v1::RUN_STATE_LOST:
      return v1::JOB_STATE_FAILED;
    case v1::RUN_STATE_CANCELED:
      return v1::JOB_STATE_CANCELED;
    default:
      return v1::JOB_STATE_UNSPECIFIED;
  }
}

std::string_view Name(v1::JobState state) {
  return WithoutPrefix(v1::JobState_Name(state), "JOB_STATE_");
}

std::string_view Name(v1::RunState state) {
  return WithoutPrefix(v1::RunState_Name(state), "RUN_STATE_");
}

std::string_view Name(v1::EvidenceSource source) {
  return WithoutPrefix(v1::EvidenceSource_Name(source), "EVIDENCE_SOURCE_");
}

std::string_view Name(v1::FailureClass failure_class) {
  return WithoutPrefix(v1::FailureClass_Name(failure_class), "FAILURE_CLASS_");
}

std::string_view Name(v1::ClusterKind kind) {
  switch (kind) {
    case v1::CLUSTER_KIND_SLURM:
      return "slurm";
    case v1::CLUSTER_KIND_KUBERNETES:
      return "kubernetes";
    case v1::CLUSTER_KIND_MACHINES:
      return "machines";
    case v1::CLUSTER_KIND_MUSTER:
      return "muster";
    default:
      return "unknown";
  }
}

}  // namespace muster::contract
