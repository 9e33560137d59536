// The verbs about projects and their flags.
#ifndef MUSTER_CLIENTS_CLI_PROJECT_FLAGS_H_
#define MUSTER_CLIENTS_CLI_PROJECT_FLAGS_H_

#include <CLI/CLI.hpp>

#include "clients/cli/invocation.h"

namespace muster::cli {

// projects, project create|show|set|add|remove|archive, and usage.
void AddProjectVerbs(CLI::App* app, Invocation* out);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_PROJECT_FLAGS_H_
