// The options of sbatch by which fields of a spec are set. Pure.
#ifndef MUSTER_CLIENTS_CLI_SLURM_SBATCH_FLAGS_H_
#define MUSTER_CLIENTS_CLI_SLURM_SBATCH_FLAGS_H_

#include "clients/cli/field_flags.h"

namespace muster::cli {

// Users of sbatch do not know the fields: errors and warnings name the options in their place.
FieldFlags SbatchFlags();

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_SBATCH_FLAGS_H_
