// Completes an unfinished command line: `muster __complete WORD...`, which the scripts of
// `muster completion` call.
#ifndef MUSTER_CLIENTS_CLI_COMPLETION_H_
#define MUSTER_CLIENTS_CLI_COMPLETION_H_

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "clients/cli/config.h"
#include "clients/cli/invocation.h"
#include "clients/cli/terminal.h"

namespace muster::cli {

// The verb of the scripts; no help shows it.
inline constexpr std::string_view kCompleteVerb = "__complete";

// Splits what stands before the cursor as a shell would, without replacing anything. The last word
// is the unfinished one, which may be empty.
std::vector<std::string> SplitCommandLine(std::string_view line);

// Says in out->completion what may come in place of the last word. The words before it name the
// broker, too. `words`: those after the name of the program.
void Complete(const CLI::App& app, const std::vector<std::string>& words, Invocation* out);

// Prints the values, each with a tab and a description behind it, and at the end ":none", ":files"
// or ":directories": what the shell adds by itself. A broker that does not answer at once adds
// nothing, and no error is printed.
int PrintCompletion(const Invocation& call, Terminal& terminal, const Environment& environment);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_COMPLETION_H_
