// Keeps sealed secrets in a file in which they outlive the broker: SQLite, one row for each. One
// thread at a time.
#ifndef MUSTER_BROKER_SECRETS_SECRET_FILE_H_
#define MUSTER_BROKER_SECRETS_SECRET_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/secrets/secret.h"
#include "daemon/sqlite.h"

namespace muster::secrets {

// The value of a secret as the file has it.
struct Sealed {
  std::string key_id;
  std::string bytes;
};

class SecretFile {
 public:
  // Makes the file if it is missing. FAILED_PRECONDITION: a newer release wrote it. Others as of
  // Database::ToStatus.
  static absl::StatusOr<std::unique_ptr<SecretFile>> Open(const std::string& path);

  // An OK of each of these means that the change is on disk.
  absl::StatusOr<std::vector<Record>> Load();
  absl::Status Put(const Record& record, const Sealed& sealed);
  absl::Status SetJob(const Id& id, uint64_t job);
  absl::Status Remove(const Id& id);
  // NOT_FOUND: there is none.
  absl::StatusOr<Sealed> Read(const Id& id);
  // Returns how many are sealed with other keys than this one.
  absl::StatusOr<int64_t> CountOthers(const std::string& key_id);
  // Seals anew everything that other keys have sealed, all or nothing.
  absl::Status Reseal(const std::string& key_id,
                      const std::function<absl::StatusOr<Sealed>(const Id&, const Sealed&)>& seal);

 private:
  explicit SecretFile(std::unique_ptr<Database> database) : database_(std::move(database)) {}
  absl::Status Prepare();

  // The statements end before their database.
  const std::unique_ptr<Database> database_;
  Statement load_, put_, set_job_, remove_, read_, count_others_, others_, reseal_;
};

}  // namespace muster::secrets

#endif  // MUSTER_BROKER_SECRETS_SECRET_FILE_H_
