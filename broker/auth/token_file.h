// Keeps tokens in a file in which they outlive the broker: SQLite, one row for each. It has the
// digests of the tokens, never a token itself. One thread at a time.
#ifndef MUSTER_BROKER_AUTH_TOKEN_FILE_H_
#define MUSTER_BROKER_AUTH_TOKEN_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/auth/token.h"
#include "daemon/sqlite.h"

namespace muster::auth {

class TokenFile {
 public:
  // Makes the file if it is missing. FAILED_PRECONDITION: a newer release wrote it. Others as of
  // Database::ToStatus.
  static absl::StatusOr<std::unique_ptr<TokenFile>> Open(const std::string& path);

  // An OK of each of these means that the change is on disk.
  absl::StatusOr<std::vector<TokenRecord>> Load();
  // Removes the tokens `gone` and adds one, all or nothing. Returns its id.
  absl::StatusOr<uint64_t> Replace(const std::vector<uint64_t>& gone, const TokenRecord& added);
  absl::Status Revoke(const std::vector<uint64_t>& ids, int64_t micros);
  // Takes pairs of an id and the time of its last use.
  absl::Status NoteUses(const std::vector<std::pair<uint64_t, int64_t>>& uses);

 private:
  explicit TokenFile(std::unique_ptr<Database> database) : database_(std::move(database)) {}
  absl::Status Prepare();

  // The statements end before their database.
  const std::unique_ptr<Database> database_;
  Statement load_, insert_, remove_, revoke_, note_use_;
};

}  // namespace muster::auth

#endif  // MUSTER_BROKER_AUTH_TOKEN_FILE_H_
