// Flags that take a time.
#ifndef MUSTER_CLIENTS_CLI_TIME_FLAG_H_
#define MUSTER_CLIENTS_CLI_TIME_FLAG_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/time/time.h"

namespace muster::cli {

// Adds a flag that takes a time in RFC 3339, or a duration before now.
void AddTime(CLI::App* verb, const std::string& flag, const std::string& description,
             absl::Time* out);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_TIME_FLAG_H_
