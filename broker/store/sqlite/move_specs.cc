#include "broker/store/sqlite/move_specs.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "broker/store/sqlite/spec_table.h"

namespace muster::store {
namespace {

// Bounds a transaction, and so the work that a crash loses; some 20 ms.
constexpr int kSpecsPerTransaction = 1000;

struct OldSpec {
  int64_t job = 0;
  std::string bytes;
};

// Reads the first spec that is left; job 0: there is none.
absl::StatusOr<OldSpec> ReadFirst(Statement* select) {
  const ScopedReset reset(select);
  const absl::StatusOr<bool> row = select->Start().Step();
  if (!row.ok()) return row.status();
  if (!*row) return OldSpec();
  return OldSpec{select->Int(0), std::string(select->Blob(1))};
}

absl::StatusOr<int64_t> Move(const OldSpec& old, SpecTable* table) {
  v1::JobSpec spec;
  // A damaged spec is reported when it is shown.
  if (!spec.ParseFromString(old.bytes)) return table->PutBytes(old.bytes);
  // A spec with fields of an older release, which this one does not know, would be refused if it
  // were submitted again.
  spec.DiscardUnknownFields();
  return table->Put(spec);
}

}  // namespace

absl::StatusOr<bool> MoveSomeSpecs(const Database& database) {
  SpecTable table;
  if (absl::Status status = table.Prepare(&database); !status.ok()) return status;
  absl::StatusOr<Statement> select =
      database.Prepare("SELECT id, spec FROM job_spec ORDER BY id LIMIT 1");
  if (!select.ok()) return select.status();
  absl::StatusOr<Statement> refer = database.Prepare("UPDATE job SET spec = ? WHERE id = ?");
  if (!refer.ok()) return refer.status();
  absl::StatusOr<Statement> remove = database.Prepare("DELETE FROM job_spec WHERE id = ?");
  if (!remove.ok()) return remove.status();
  for (int i = 0; i < kSpecsPerTransaction; ++i) {
    const absl::StatusOr<OldSpec> old = ReadFirst(&*select);
    if (!old.ok()) return old.status();
    if (old->job == 0) return false;
    const absl::StatusOr<int64_t> row = Move(*old, &table);
    if (!row.ok()) return row.status();
    absl::Status status = refer->Start().Bind(*row).Bind(old->job).Run();
    if (status.ok()) status = remove->Start().Bind(old->job).Run();
    if (!status.ok()) return status;
  }
  return true;
}

}  // namespace muster::store
