// Finds the token that goes with the calls. A token is never in an argument, and no message shows
// it.
#ifndef MUSTER_CLIENTS_CLI_TOKEN_SOURCE_H_
#define MUSTER_CLIENTS_CLI_TOKEN_SOURCE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::cli {

// The token in a file, which has nothing else but blanks. INVALID_ARGUMENT: the file's mode lets
// others read it, or it has no whole token. Others: it cannot be read.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path);

// Checks a token from elsewhere. INVALID_ARGUMENT names the source.
absl::StatusOr<std::string> CheckToken(std::string_view text, std::string_view source);

// Makes a file that only its owner may read, for a new token. ALREADY_EXISTS: it is there.
absl::StatusOr<int> MakeTokenFile(const std::string& path);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_TOKEN_SOURCE_H_
