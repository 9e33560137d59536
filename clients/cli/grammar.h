// The verbs of the command line with their flags.
#ifndef MUSTER_CLIENTS_CLI_GRAMMAR_H_
#define MUSTER_CLIENTS_CLI_GRAMMAR_H_

#include <CLI/CLI.hpp>

#include "clients/cli/invocation.h"

namespace muster::cli {

// The request that is read goes to `out`, which must outlive the application.
void AddGrammar(CLI::App* app, Invocation* out);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_GRAMMAR_H_
