// The place where a task wants to run. Pure.
#ifndef MUSTER_CLIENTS_CPP_SKYPILOT_INFRA_H_
#define MUSTER_CLIENTS_CPP_SKYPILOT_INFRA_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster::client::skypilot {

struct Infra {
  enum class Kind { kAny, kCloud, kSlurm, kKubernetes, kMachines };
  Kind kind = Kind::kAny;
  std::string cluster;  // Muster's name of it; empty: any of the kind
  std::string pool;     // of Slurm, the partition; empty: the cluster's default
};

// "slurm/NAME/PARTITION", "k8s/NAME", "kubernetes/NAME", "ssh/NAME", where a '*' is any and the
// rest may be left out, except for NAME after ssh; or a cloud with its region and zone. The first
// part ignores case, and all that is behind "k8s/" is the name. INVALID_ARGUMENT says what would
// work.
absl::StatusOr<Infra> ParseInfra(std::string_view text);

}  // namespace muster::client::skypilot

#endif  // MUSTER_CLIENTS_CPP_SKYPILOT_INFRA_H_
