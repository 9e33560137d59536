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
// A verb below another one, with its help.
CLI::App* AddVerb(CLI::App* app, Invocation* out, const std::string& name, Verb verb,
                  const std::string& description, std::string_view example);
// The verb above them.
CLI::App* AddGroup(CLI::App* app, const std::string& name, const std::string& description,
                   std::string_view example);
// login, logout, whoami, token create|list|revoke, context list|use|set|delete.
void AddPeopleVerbs(CLI::App* app, Invocation* out);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_PEOPLE_FLAGS_H_
