// The verb usage and its flags.
#ifndef MUSTER_CLIENTS_CLI_USAGE_FLAGS_H_
#define MUSTER_CLIENTS_CLI_USAGE_FLAGS_H_

#include <CLI/CLI.hpp>

#include "clients/cli/invocation.h"

namespace muster::cli {

void AddUsageVerb(CLI::App* app, Invocation* out);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_USAGE_FLAGS_H_
