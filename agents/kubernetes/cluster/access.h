// Asks the API server whether the agent's account may do something.
#ifndef MUSTER_AGENTS_KUBERNETES_CLUSTER_ACCESS_H_
#define MUSTER_AGENTS_KUBERNETES_CLUSTER_ACCESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/kubernetes/api/api.h"

namespace muster::kubernetes {

// The resource of Jobs. Without its Job there is nothing of a run.
inline constexpr char kJobs[] = "jobs";

struct Access {
  std::string verb;             // "create"
  std::string group = {};       // "": core
  std::string resource = {};    // "jobs"; "pods/log" for a subresource
  std::string name = {};        // only the object of this name; empty: all
  std::string name_space = {};  // empty: the whole cluster
};

// Asks the server. Errors: it could not be asked within that time, or does not say.
absl::StatusOr<bool> IsAllowed(const Access& access, Api* api,
                               absl::Duration timeout = absl::Seconds(30));

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_CLUSTER_ACCESS_H_
