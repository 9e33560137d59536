// Which of the alternatives of a task is submitted.
#ifndef MUSTER_CLIENTS_CLI_ALTERNATIVES_H_
#define MUSTER_CLIENTS_CLI_ALTERNATIVES_H_

#include <functional>

#include "absl/status/status.h"
#include "clients/cli/verbs.h"
#include "clients/cpp/jobfile.h"

namespace muster::cli {

// Of each job with alternatives takes the first that some cluster would start at once, else the
// first that some cluster can run, else the first of which that is not known, as their plans say,
// and tells which. If no cluster can run any, the first of all remains, and what stands against
// each is told. `complete` writes what else the command line says over a spec.
void ChooseAlternatives(Session& session, const std::function<absl::Status(v1::JobSpec*)>& complete,
                        client::JobFile* jobs);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_ALTERNATIVES_H_
