// Lists the options of sbatch as data: how each is written, and which variable sets it.
#ifndef MUSTER_CLIENTS_CPP_SLURM_SBATCH_OPTIONS_H_
#define MUSTER_CLIENTS_CPP_SLURM_SBATCH_OPTIONS_H_

#include <string_view>

#include "clients/cpp/slurm/options.h"

namespace muster::client::slurm {

OptionTable SbatchOptions();
const Option* FindSbatchVariable(std::string_view variable);

}  // namespace muster::client::slurm

#endif  // MUSTER_CLIENTS_CPP_SLURM_SBATCH_OPTIONS_H_
