// The scripts that make a shell ask this program for completions.
#ifndef MUSTER_CLIENTS_CLI_COMPLETION_SCRIPTS_H_
#define MUSTER_CLIENTS_CLI_COMPLETION_SCRIPTS_H_

#include <string_view>

namespace muster::cli {

// For bash, zsh or fish; empty: it is another shell.
std::string_view CompletionScript(std::string_view shell);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_COMPLETION_SCRIPTS_H_
