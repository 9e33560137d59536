// Finds the tool that makes containers on a host.
#ifndef MUSTER_AGENTS_MACHINES_CONTAINER_RUNTIME_H_
#define MUSTER_AGENTS_MACHINES_CONTAINER_RUNTIME_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "agents/hosts/host.h"
#include "agents/machines/scheduling/request.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::machines {

// The value that an operator sets in place of a tool's name.
inline constexpr char kFirstFound[] = "auto";
inline constexpr char kNoContainers[] = "none";

struct ContainerRuntime {
  std::string tool = {};  // empty: none
  std::string why = {};   // likewise
};

// Finds the tool that is wanted, or the first that answers of podman, docker, enroot and apptainer.
// UNAVAILABLE: the host could not be asked.
absl::StatusOr<ContainerRuntime> FindContainerRuntime(const std::string& wanted, hosts::Host& host);

// Returns the reason that a job with an image cannot run there; nothing if it can, or if it has no
// image.
std::optional<Misfit> CheckImage(const v1::JobSpec& spec, const ContainerRuntime& runtime);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_CONTAINER_RUNTIME_H_
