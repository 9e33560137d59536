#include "broker/rpc/rotate_secrets_key.h"

#include <fmt/format.h>

#include <cstdlib>

#include "absl/time/clock.h"
#include "daemon/directory_lock.h"

namespace muster::broker {

secrets::SecretsOptions SecretsOptionsOf(const std::string& state_dir) {
  secrets::SecretsOptions options = {.database = state_dir + "/secrets.db",
                                     .key_file = state_dir + "/secrets.key",
                                     .credential = {},
                                     .now = absl::Now};
  if (const char* directory = std::getenv("CREDENTIALS_DIRECTORY"))
    options.credential = std::string(directory) + "/muster-secrets-key";
  return options;
}

absl::StatusOr<std::string> RotateSecretsKey(const std::string& state_dir) {
  const auto lock = DirectoryLock::Take({.path = state_dir + "/broker.lock",
                                         .if_held = "stop that broker first",
                                         .if_not_writable = "run this as the broker's user"});
  if (!lock.ok()) return lock.status();
  const auto secrets = secrets::Secrets::Open(SecretsOptionsOf(state_dir));
  if (!secrets.ok()) return secrets.status();
  const absl::StatusOr<size_t> count = (*secrets)->RotateKey();
  if (!count.ok()) return count.status();
  return fmt::format(
      "made a new key in {}/secrets.key and sealed {} secrets with it; back that file up, apart "
      "from secrets.db, and destroy the backups of the old one\n",
      state_dir, *count);
}

}  // namespace muster::broker
