// The flags of the verbs that name jobs: show and why, and those that change them.
#ifndef MUSTER_CLIENTS_CLI_CHANGE_FLAGS_H_
#define MUSTER_CLIENTS_CLI_CHANGE_FLAGS_H_

#include <CLI/CLI.hpp>

#include "clients/cli/invocation.h"

namespace muster::cli {

// show, cancel, why, hold, release, move, update, rerun.
void AddChangeVerbs(CLI::App* app, Invocation* out);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_CHANGE_FLAGS_H_
