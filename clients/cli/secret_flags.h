// The verbs about secrets.
#ifndef MUSTER_CLIENTS_CLI_SECRET_FLAGS_H_
#define MUSTER_CLIENTS_CLI_SECRET_FLAGS_H_

#include <CLI/CLI.hpp>

#include "clients/cli/invocation.h"

namespace muster::cli {

// --secret, --secret-file of a job.
void AddSecretUses(CLI::App* sub, SpecFlags* spec);
// secret set|list|rm.
void AddSecretVerbs(CLI::App* app, Invocation* out);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SECRET_FLAGS_H_
