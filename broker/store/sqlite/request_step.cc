#include "broker/store/sqlite/request_step.h"

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/core/fingerprint.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::store {
namespace {

struct Renewed {
  uint64_t job = 0;
  core::Fingerprint fingerprint = 0;
};

// Reads the requests of the jobs after `job`, in the order of the jobs.
absl::StatusOr<std::vector<Renewed>> ReadPage(const Database& database, Statement& read,
                                              uint64_t job) {
  std::vector<Renewed> page;
  read.Start().Bind(job);
  while (true) {
    const absl::StatusOr<bool> has_row = read.Step();
    if (!has_row.ok()) return has_row.status();
    if (!*has_row) return page;
    const std::string_view bytes = read.Blob(1);
    v1::JobSpec spec;
    if (!spec.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
      return database.ToStatus(SQLITE_CORRUPT, "read a message of table job_spec");
    // Drops fields of that release that this one no longer has.
    spec.DiscardUnknownFields();
    page.push_back({static_cast<uint64_t>(read.Int(0)), core::RequestFingerprintOf(spec)});
  }
}

}  // namespace

absl::Status RenewFingerprints(const Database& database) {
  absl::StatusOr<Statement> read = database.Prepare(
      "SELECT r.job, s.spec FROM request r JOIN job_spec s ON s.id = r.job WHERE r.job > ?"
      " ORDER BY r.job LIMIT 1000");
  if (!read.ok()) return read.status();
  absl::StatusOr<Statement> write =
      database.Prepare("UPDATE request SET fingerprint = ? WHERE job = ?");
  if (!write.ok()) return write.status();
  uint64_t last = 0;
  while (true) {
    const absl::StatusOr<std::vector<Renewed>> page = ReadPage(database, *read, last);
    if (!page.ok()) return page.status();
    if (page->empty()) return absl::OkStatus();
    last = page->back().job;
    for (const Renewed& renewed : *page) {
      const absl::Status status = write->Start().Bind(renewed.fingerprint).Bind(renewed.job).Run();
      if (!status.ok()) return status;
    }
  }
}

}  // namespace muster::store
