// Keeps all secrets of a broker: their names in memory, their values sealed in a file.
//
// Any thread may use it. Find and List never wait for the disk; all others do.
#ifndef MUSTER_BROKER_SECRETS_SECRETS_H_
#define MUSTER_BROKER_SECRETS_SECRETS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/secrets/key_ring.h"
#include "broker/secrets/secret.h"
#include "sync/mutex.h"

namespace muster::secrets {

// Bounds the secrets of one owner, and of all: each has 300 bytes of memory and 64 KiB of disk.
inline constexpr size_t kMaxSecretsOfOwner = 1000;
inline constexpr size_t kMaxSecrets = 100'000;
// A secret for one job waits for its job no longer than this; a submit follows at once.
inline constexpr absl::Duration kOneJobPatience = absl::Hours(24);

class SecretFile;

struct SecretsOptions {
  std::string database;  // made if it is missing
  // The broker's own file of keys. It is made with the first secret.
  std::string key_file;
  // A systemd credential with the keys, which is used if it is there; empty if there is none.
  std::string credential;
  std::function<absl::Time()> now;
};

class Secrets {
 public:
  // A key that is missing or wrong is no error here: values cannot be set or read, and the log says
  // so. Seals anew what older keys have sealed, so that a rotation that was cut off is finished.
  // Errors as of SecretFile::Open.
  static absl::StatusOr<std::unique_ptr<Secrets>> Open(SecretsOptions options);
  ~Secrets();

  std::optional<Record> Find(const Id& id) const;
  // Returns up to `limit` secrets that `is_wanted` takes, in order, those behind `after` if that is
  // given.
  std::vector<Record> List(const std::optional<Id>& after, size_t limit,
                           const std::function<bool(const Record&)>& is_wanted) const;

  // The request was checked. RESOURCE_EXHAUSTED, TOO_MANY_SECRETS. ALREADY_EXISTS, SECRET_EXISTS:
  // for_one_job, and the name is taken. UNAVAILABLE, SECRETS_LOCKED. Others: the file.
  absl::StatusOr<Record> Set(const Id& id, std::string_view value, bool for_one_job);
  // Notes which job a secret for one job is of.
  absl::Status SetJob(const Id& id, uint64_t job);
  // NOT_FOUND: there is none.
  absl::Status Remove(const Id& id);
  // NOT_FOUND: there is none. DATA_LOSS, SECRET_SEALED: it cannot be opened. UNAVAILABLE,
  // SECRETS_LOCKED.
  absl::StatusOr<std::string> Read(const Id& id) const;

  // Makes a new key and seals all values with it. The old one is in the file until that is done:
  // wherever it is cut off, Open finishes it. Not with a credential. Returns how many there are.
  absl::StatusOr<size_t> RotateKey();

 private:
  explicit Secrets(SecretsOptions options);
  absl::Status Load() ABSL_EXCLUSIVE_LOCKS_REQUIRED(file_mutex_);
  absl::Status ReadKeys() ABSL_EXCLUSIVE_LOCKS_REQUIRED(file_mutex_);
  absl::Status UsePresentKey() ABSL_EXCLUSIVE_LOCKS_REQUIRED(file_mutex_);
  absl::Status MakeFirstKey() ABSL_EXCLUSIVE_LOCKS_REQUIRED(file_mutex_);
  absl::Status CheckRoom(const Id& id, bool for_one_job) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(file_mutex_);

  const SecretsOptions options_;
  // Held for a whole change, so that memory and file have the changes in one order.
  mutable Mutex file_mutex_;
  std::unique_ptr<SecretFile> file_ ABSL_PT_GUARDED_BY(file_mutex_);
  KeyRing keys_ ABSL_GUARDED_BY(file_mutex_);
  // If not OK, it says why values can be neither set nor read.
  absl::Status locked_ ABSL_GUARDED_BY(file_mutex_);
  std::map<std::pair<OwnerKind, std::string>, size_t> counts_ ABSL_GUARDED_BY(file_mutex_);

  mutable Mutex mutex_;  // taken after file_mutex_, and never held while the disk works
  std::map<Id, Record> records_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::secrets

#endif  // MUSTER_BROKER_SECRETS_SECRETS_H_
