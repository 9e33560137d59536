// Makes every OK durable: commits what the core has decided, and only then carries it out. The
// store thread takes it, and so does the simulation. Pure.
#ifndef MUSTER_BROKER_ENGINE_COMMIT_STEP_H_
#define MUSTER_BROKER_ENGINE_COMMIT_STEP_H_

#include <functional>

#include "absl/status/status.h"
#include "broker/core/core.h"

namespace muster::broker {

// Stores all of the changes or none.
using CommitChanges = std::function<absl::Status(const core::Changes&)>;
// The function may move from `committed`.
using CarryOutCommitted = std::function<void(core::Output committed)>;

// Commits the changes, if there are any, then has the whole output carried out. Returns the error
// of the commit: nothing was carried out, and nothing may be committed or carried out after it.
absl::Status CommitThenCarryOut(core::Output output, const CommitChanges& commit,
                                const CarryOutCommitted& carry_out);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_ENGINE_COMMIT_STEP_H_
