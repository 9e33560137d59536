#include "broker/store/sqlite/old_runs.h"

#include <string>
#include <utility>
#include <vector>

#include "contract/old_reasons.h"
#include "muster/v1/job.pb.h"

namespace muster::store {
namespace {

// Runs that are read before the changed ones among them are written: a run has up to 1 MiB.
constexpr int kRunsAtATime = 100;

struct OldRun {
  int64_t id = 0;
  std::string bytes;  // the new bytes; empty: the run stays as it is
};

absl::StatusOr<std::vector<OldRun>> ReadAfter(int64_t id, Statement* select) {
  const ScopedReset reset(select);
  select->Start().Bind(id).Bind(kRunsAtATime);
  std::vector<OldRun> runs;
  while (true) {
    const absl::StatusOr<bool> row = select->Step();
    if (!row.ok()) return row.status();
    if (!*row) return runs;
    OldRun& old = runs.emplace_back(OldRun{select->Int(0), ""});
    v1::Run run;
    // A damaged run is reported when it is shown.
    const std::string_view blob = select->Blob(1);
    if (run.ParseFromArray(blob.data(), static_cast<int>(blob.size())) &&
        contract::TakeOverReason(&run))
      old.bytes = run.SerializeAsString();
  }
}

}  // namespace

absl::Status TakeOverReasons(const Database& database) {
  absl::StatusOr<Statement> select =
      database.Prepare("SELECT id, run FROM run WHERE id > ? ORDER BY id LIMIT ?");
  if (!select.ok()) return select.status();
  absl::StatusOr<Statement> update = database.Prepare("UPDATE run SET run = ? WHERE id = ?");
  if (!update.ok()) return update.status();
  int64_t last = 0;
  while (true) {
    const absl::StatusOr<std::vector<OldRun>> runs = ReadAfter(last, &*select);
    if (!runs.ok()) return runs.status();
    if (runs->empty()) return absl::OkStatus();
    for (const OldRun& run : *runs) {
      if (run.bytes.empty()) continue;
      const absl::Status written = update->Start().BindBlob(run.bytes).Bind(run.id).Run();
      if (!written.ok()) return written;
    }
    last = runs->back().id;
  }
}

}  // namespace muster::store
