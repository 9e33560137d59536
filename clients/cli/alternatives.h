// Chooses the alternative of a task that is submitted.
#ifndef MUSTER_CLIENTS_CLI_ALTERNATIVES_H_
#define MUSTER_CLIENTS_CLI_ALTERNATIVES_H_

#include <functional>

#include "absl/status/status.h"
#include "clients/cli/verbs.h"
#include "clients/cpp/jobfile.h"

namespace muster::cli {

// Chooses an alternative for each job that has several, by their plans, and says which: the first
// that some cluster would start at once, else the first that some cluster can run, else the first
// whose clusters cannot be asked. If no cluster can run any of them, the first one remains, and the
// obstacles of each are said. `complete` writes the values of the command line over a spec.
void ChooseAlternatives(Session& session, const std::function<absl::Status(v1::JobSpec*)>& complete,
                        client::JobFile* jobs);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_ALTERNATIVES_H_
