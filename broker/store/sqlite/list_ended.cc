// Implements Reader::ListEnded, which finds the jobs that have been kept long enough.
#include "broker/store/sqlite/reader.h"
#include "broker/store/sqlite/schema.h"

namespace muster::store {

absl::StatusOr<std::vector<uint64_t>> Reader::ListEnded(absl::Time before, int max_rows) {
  std::vector<uint64_t> jobs;
  ScopedReset reset(&ended_);
  ended_.Start().Bind(absl::ToUnixMicros(before)).Bind(max_rows);
  int64_t rows = 0;
  while (rows < max_rows) {
    absl::StatusOr<bool> row = ended_.Step();
    if (!row.ok()) return row.status();
    if (!*row) break;
    rows += ended_.Int(1);
    if (rows > max_rows && !jobs.empty()) break;
    jobs.push_back(static_cast<uint64_t>(ended_.Int(0)));
  }
  return jobs;
}

}  // namespace muster::store
