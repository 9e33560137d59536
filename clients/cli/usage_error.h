// Explains what is wrong with a command line, where CLI11 says too little.
#ifndef MUSTER_CLIENTS_CLI_USAGE_ERROR_H_
#define MUSTER_CLIENTS_CLI_USAGE_ERROR_H_

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

inline constexpr std::string_view kDashes =
    "put the command after --, as in: muster run -- echo hello";

// Returns CLI11's words, or better ones. `typed`: the words of the command line, up to the "--"
// that a command follows if `has_command`.
std::string ExplainUsage(CLI::App& app, const CLI::ParseError& error,
                         const std::vector<const char*>& typed, bool has_command);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_USAGE_ERROR_H_
