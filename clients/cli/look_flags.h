// The flags of the verbs that look at jobs and follow them.
#ifndef MUSTER_CLIENTS_CLI_LOOK_FLAGS_H_
#define MUSTER_CLIENTS_CLI_LOOK_FLAGS_H_

#include <CLI/CLI.hpp>

#include "clients/cli/invocation.h"

namespace muster::cli {

// list, ps, count.
void AddListVerbs(CLI::App* app, Invocation* out);
// logs, events, cp, wait.
void AddFollowVerbs(CLI::App* app, Invocation* out);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_LOOK_FLAGS_H_
