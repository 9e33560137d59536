// A run on its way to Slurm. Part of the backend.
#ifndef MUSTER_AGENTS_SLURM_FRESH_RUN_H_
#define MUSTER_AGENTS_SLURM_FRESH_RUN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agents/slurm/backend.h"
#include "agents/slurm/run_files.h"

namespace muster::slurm {

// A run that Slurm does not have, with all that its submission needs.
struct SlurmBackend::Fresh {
  size_t index = 0;                                         // among those that came together
  std::shared_ptr<const agent::v1::Assignment> assignment;  // complete, with the cluster's paths
  std::string pulled_because;                               // see ImageCache::Ready
  std::optional<uint64_t> conversion;
  std::vector<RunFile> files;
  // Tasks that are submitted together share these: the number of their job array, the words for a
  // run without a name, and the batch script. Empty: it is a job of its own.
  std::vector<std::string> likeness;
  uint32_t task = 0;          // with a likeness: its id in the array of Slurm's
  bool is_first = false;      // no launch before this one has left files
  absl::Time files_deadline;  // of what all that came together bring along; by time_
};

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_FRESH_RUN_H_
