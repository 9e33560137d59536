// Submits jobs that depend on others, after looking up how those that have ended did so.
#ifndef MUSTER_BROKER_APP_SUBMIT_DEPENDENTS_H_
#define MUSTER_BROKER_APP_SUBMIT_DEPENDENTS_H_

#include <cstddef>

#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "broker/core/core.h"
#include "broker/engine/effects.h"

namespace muster::broker {

// Different jobs that the jobs of one submit may name in depends_on. Each costs a read.
inline constexpr size_t kMaxDependenciesPerSubmit = 10'000;

// Submits as SubmitWithFiles does. Errors are also NOT_FOUND for a job that depends_on names and
// that is not there for the principal, and INVALID_ARGUMENT for more than
// kMaxDependenciesPerSubmit of them. A repeat of an accepted request is answered as if they were
// there. Jobs without depends_on pass at once; for others the readers look first. Does not block.
void SubmitWithDependencies(const Principal& principal, const Services& services,
                            core::Submit submit, SubmitDone done);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_SUBMIT_DEPENDENTS_H_
