// The flags of the verbs that submit: submit, run, plan.
#ifndef MUSTER_CLIENTS_CLI_SUBMIT_FLAGS_H_
#define MUSTER_CLIENTS_CLI_SUBMIT_FLAGS_H_

#include <CLI/CLI.hpp>

#include "clients/cli/invocation.h"

namespace muster::cli {

void AddSubmitVerbs(CLI::App* app, Invocation* out);
void AddPlanVerb(CLI::App* app, Invocation* out);
// init and schema, which help to write job files.
void AddFileVerbs(CLI::App* app, Invocation* out);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SUBMIT_FLAGS_H_
