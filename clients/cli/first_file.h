// The first job file of somebody who has none.
#ifndef MUSTER_CLIENTS_CLI_FIRST_FILE_H_
#define MUSTER_CLIENTS_CLI_FIRST_FILE_H_

#include <string>
#include <string_view>

#include "clients/cli/invocation.h"
#include "clients/cli/terminal.h"

namespace muster::cli {

// A job file with comments, for a kind of cluster; any other text is any kind. It can be submitted
// as it is.
std::string FirstJobFile(std::string_view kind);

// The verbs init and schema, which need no broker. They return the exit code.
int Init(const Invocation& call, Terminal& terminal);
int Schema(Terminal& terminal);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_FIRST_FILE_H_
