// Makes the options of srun for a run's container.
#ifndef MUSTER_AGENTS_SLURM_CONTAINER_H_
#define MUSTER_AGENTS_SLURM_CONTAINER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/slurm/run_files.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::slurm {

// The image that a run's container is made from.
struct ContainerImage {
  // The value of --container-image.
  std::string image;
  // The Slurm job that must have converted the image, or a later one; nothing if any whole file
  // will do.
  std::optional<uint64_t> refreshed_by;
  // The value of --container-image if there is no such file; the run fails if it is empty.
  std::string fallback;
};

// Returns Pyxis' options of srun for a run with an image; --container-image is the first,
// --container-entrypoint the last, if it is there. `cluster_mounts` are directories that every
// container of the cluster shows. INVALID_ARGUMENT names a mount that Pyxis has no way to write, or
// an environment that is too large for it.
absl::StatusOr<std::vector<std::string>> ContainerOptions(
    const agent::v1::Assignment& assignment, std::string_view cluster, std::string_view image,
    const RunPaths& paths, const std::vector<std::string>& cluster_mounts);

// Returns the file `container` of a run's directory, which batch.sh reads.
std::string ContainerFile(const ContainerImage& image, const std::vector<std::string>& options);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_CONTAINER_H_
