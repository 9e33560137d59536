// The settings slurm.default_* and slurm.gpus_per_node: what a cluster fills in where a job leaves
// it open.
#ifndef MUSTER_AGENTS_APP_SLURM_PROFILE_SETTINGS_H_
#define MUSTER_AGENTS_APP_SLURM_PROFILE_SETTINGS_H_

#include <vector>

#include "agents/slurm/profile.h"
#include "daemon/settings.h"

namespace muster::agents {

// They write into `profile`, and take only what a job could say itself.
std::vector<Setting> SlurmProfileSettings(slurm::Profile* profile);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_APP_SLURM_PROFILE_SETTINGS_H_
