// Files of variables, as --env-file names them. Pure.
#ifndef MUSTER_CLIENTS_CLI_SKY_ENV_FILE_H_
#define MUSTER_CLIENTS_CLI_SKY_ENV_FILE_H_

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster::cli::sky {

// Lines NAME=VALUE, as dotenv has them: `export` before it, comments, values in single or double
// quotes (in double ones \n, \t, \" and \\ mean what they do elsewhere). The last of a name counts.
// INVALID_ARGUMENT "FILE:LINE: ...": no such line, a quote that does not end with its line, or a
// ${...}, which is not expanded.
absl::StatusOr<std::map<std::string, std::string>> ParseEnvFile(std::string_view file,
                                                                std::string_view text);

}  // namespace muster::cli::sky

#endif  // MUSTER_CLIENTS_CLI_SKY_ENV_FILE_H_
