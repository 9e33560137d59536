// What srun is told of a run's container.
#ifndef MUSTER_AGENTS_SLURM_CONTAINER_H_
#define MUSTER_AGENTS_SLURM_CONTAINER_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/slurm/run_files.h"
#include "muster/v1/agent_link.pb.h"

namespace muster::slurm {

// Pyxis' options of srun for a run with an image. `image` is what --container-image gets;
// `cluster_mounts` are directories that every container of the cluster shows. INVALID_ARGUMENT
// names a mount that Pyxis has no way to write.
absl::StatusOr<std::vector<std::string>> ContainerOptions(
    const v1::JobSpec& spec, std::string_view image, const RunPaths& paths,
    const std::vector<std::string>& cluster_mounts);

// The file `container` of a run's directory, which batch.sh reads.
std::string ContainerFile(std::string_view image, const std::vector<std::string>& options);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_CONTAINER_H_
