// Proves that nothing of a run lives on this machine, and that nothing ever will.
#ifndef MUSTER_AGENTS_MACHINES_FENCE_H_
#define MUSTER_AGENTS_MACHINES_FENCE_H_

#include <optional>

#include "agents/core/backend.h"
#include "agents/machines/run_directory.h"

namespace muster::machines {

// Judges by the run's directory, and by what the board says of the run, if it has it. Keeps a run
// that has not begun from it for good.
agents::FenceOutcome FenceRun(const RunDirectory& directory,
                              const std::optional<agents::FenceOutcome>& on_board);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_FENCE_H_
