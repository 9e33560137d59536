// The brokers that the user has named, and the one that commands talk to: contexts.yaml, which the
// verb `context` writes.
#ifndef MUSTER_CLIENTS_CLI_CONTEXTS_H_
#define MUSTER_CLIENTS_CLI_CONTEXTS_H_

#include <cstddef>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::cli {

// More are no list that a person keeps.
inline constexpr size_t kMaxContexts = 1000;

struct NamedContext {
  std::string broker;      // an address
  std::string token_file;  // an absolute path; empty: no token
  std::string ca_file;     // likewise, of the CAs of a broker over TLS; empty: none
};

struct Contexts {
  std::string current;  // empty: none
  std::map<std::string, NamedContext> by_name;
};

// A file that is not there has none. INVALID_ARGUMENT: "FILE:LINE:COLUMN: ...".
absl::StatusOr<Contexts> ReadContexts(const std::string& path);
// Puts the file in place as a whole; its directory is made. Only its owner may read it.
absl::Status WriteContexts(const std::string& path, const Contexts& contexts);

// Makes the directory and those above it, for their owner alone.
absl::Status MakeDirectories(const std::string& path);

// NOT_FOUND, with the names that there are.
absl::Status NoSuchContext(const Contexts& contexts, const std::string& name);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_CONTEXTS_H_
