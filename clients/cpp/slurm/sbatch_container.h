// Reads the container of a batch script: Pyxis' options of sbatch. Pure; of MapSbatch.
#ifndef MUSTER_CLIENTS_CPP_SLURM_SBATCH_CONTAINER_H_
#define MUSTER_CLIENTS_CPP_SLURM_SBATCH_CONTAINER_H_

#include <string>
#include <string_view>
#include <vector>

#include "clients/cpp/slurm/options.h"
#include "contract/errors.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::client::slurm {

// Returns whether the option is one of those that MapContainer reads.
bool IsOfContainer(std::string_view option);

// Returns the option that takes this one of Pyxis' back: "no-container-remap-root" for
// "container-remap-root", and the other way round; empty if it is no switch.
std::string_view OppositeOf(std::string_view option);

// Fills image, mounts and slurm.container. Relative paths begin at `directory`. Names in `errors`
// what a container on Muster cannot have, and adds to `notes` what has no effect.
void MapContainer(const Settings& given, const std::string& directory, v1::JobSpec* spec,
                  contract::FieldErrors* errors, std::vector<std::string>* notes);

}  // namespace muster::client::slurm

#endif  // MUSTER_CLIENTS_CPP_SLURM_SBATCH_CONTAINER_H_
