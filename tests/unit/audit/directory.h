// A directory for the file of an audit log, and records for it.
#ifndef MUSTER_TESTS_UNIT_AUDIT_DIRECTORY_H_
#define MUSTER_TESTS_UNIT_AUDIT_DIRECTORY_H_

#include <cstdlib>
#include <filesystem>
#include <string>

#include "broker/audit/record.h"

namespace muster::audit {

class Directory {
 public:
  Directory() {
    char name[] = "/tmp/muster-audit-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  std::string file() const { return path_ / "audit.db"; }

 private:
  std::filesystem::path path_;
};

inline Record CancelOf(const std::string& jobs, int64_t micros = 1) {
  return {.micros = micros,
          .user = "ada",
          .role = "operator",
          .credential = "token 3",
          .origin = "fd:7",
          .action = "JobsService.CancelJobs",
          .jobs = jobs,
          .target = "filter=\"x\"",
          .result = "OK"};
}

}  // namespace muster::audit

#endif  // MUSTER_TESTS_UNIT_AUDIT_DIRECTORY_H_
