// The verbs of the command line with their flags.
#ifndef MUSTER_CLIENTS_CLI_GRAMMAR_H_
#define MUSTER_CLIENTS_CLI_GRAMMAR_H_

#include <CLI/CLI.hpp>

#include "clients/cli/invocation.h"

namespace muster::cli {

// The verbs that are added. Those that read their words themselves have no flags here, and a
// command that begins with one of them starts sooner without all the others.
enum class VerbsOf { kAll, kOwnWords };

// The request that is read goes to `out`, which must outlive the application.
void AddGrammar(CLI::App* app, VerbsOf verbs, Invocation* out);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_GRAMMAR_H_
