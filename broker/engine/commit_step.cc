#include "broker/engine/commit_step.h"

#include <utility>

namespace muster::broker {

absl::Status CommitThenCarryOut(core::Output output, const CommitChanges& commit,
                                const CarryOutCommitted& carry_out) {
  if (!output.changes.empty()) {
    if (absl::Status status = commit(output.changes); !status.ok()) return status;
  }
  carry_out(std::move(output));
  return absl::OkStatus();
}

}  // namespace muster::broker
