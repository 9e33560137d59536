// The flags that say which broker and as whom, and the verbs about people and contexts.
#ifndef MUSTER_CLIENTS_CLI_PEOPLE_FLAGS_H_
#define MUSTER_CLIENTS_CLI_PEOPLE_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "clients/cli/invocation.h"

namespace muster::cli {

// Ends the help of every verb.
std::string Footer(std::string_view example);

// --broker, --context, --token-file.
void AddConnectionFlags(CLI::App* app, Invocation* out);
// login, logout, whoami, token create|list|revoke, context list|use|set|delete.
void AddPeopleVerbs(CLI::App* app, Invocation* out);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_PEOPLE_FLAGS_H_
