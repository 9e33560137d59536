// The words and flags of the verb clusters.
#ifndef MUSTER_CLIENTS_CLI_CLUSTER_FLAGS_H_
#define MUSTER_CLIENTS_CLI_CLUSTER_FLAGS_H_

#include <CLI/CLI.hpp>

#include "clients/cli/invocation.h"

namespace muster::cli {

void AddClusterFlags(CLI::App* clusters, Invocation* out);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_CLUSTER_FLAGS_H_
