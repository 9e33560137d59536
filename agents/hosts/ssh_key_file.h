// A private key's file.
#ifndef MUSTER_AGENTS_HOSTS_SSH_KEY_FILE_H_
#define MUSTER_AGENTS_HOSTS_SSH_KEY_FILE_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster::hosts {

// The key, if the file belongs to this process's user (or root) and nobody else can read it.
// FAILED_PRECONDITION names the path, its mode and the remedy; also if a passphrase protects it.
absl::StatusOr<std::string> ReadKeyFile(const std::string& path);

// Returns the bytes of a key in OpenSSH's own form (PROTOCOL.key); nothing if it is in another
// form, or damaged.
std::optional<std::string> OpensshKeyBytes(std::string_view key);

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_SSH_KEY_FILE_H_
