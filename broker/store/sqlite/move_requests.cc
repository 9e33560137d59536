#include "broker/store/sqlite/move_requests.h"

#include <fmt/format.h>

namespace muster::store {
namespace {

// Bounds a transaction, and so the work that a crash loses; some 20 ms.
constexpr int kRequestsPerTransaction = 5000;

}  // namespace

absl::StatusOr<bool> MoveSomeRequests(const Database& database) {
  const std::string some =
      fmt::format("(SELECT job FROM request ORDER BY job LIMIT {})", kRequestsPerTransaction);
  absl::Status status = database.Execute(
      "UPDATE job SET (request_id, fingerprint) ="
      " (SELECT r.request_id, r.fingerprint FROM request r WHERE r.job = job.id)"
      " WHERE id IN " +
      some);
  if (status.ok()) status = database.Execute("DELETE FROM request WHERE job IN " + some);
  if (!status.ok()) return status;
  return database.changes() == kRequestsPerTransaction;
}

}  // namespace muster::store
