#include "broker/store/sqlite/database.h"

namespace muster::store {

absl::StatusOr<std::unique_ptr<Database>> OpenDatabase(const std::string& path, int flags,
                                                       const char* vfs) {
  constexpr DatabaseRemedies kRemedies = {
      .full = "free space on its disk and start again",
      .damaged =
          "the file is damaged: put back a backup, or save what it still holds with "
          "\"sqlite3 FILE .recover\"",
      .disk_error = "look into the kernel's log for errors of its disk",
      .not_writable = "its user must own the directory and the file",
  };
  return Database::Open(path, flags, {.remedies = kRemedies, .vfs = vfs});
}

}  // namespace muster::store
