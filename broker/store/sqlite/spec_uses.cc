#include "broker/store/sqlite/spec_uses.h"

namespace muster::store {

absl::Status SpecUses::Prepare(const Database* database) {
  database_ = database;
  return database_->PrepareAll({
      {&add_,
       "INSERT INTO spec_use (spec, jobs) VALUES (?, ?) ON CONFLICT (spec)"
       " DO UPDATE SET jobs = jobs + excluded.jobs"},
      {&drop_, "DELETE FROM spec_use WHERE spec = ? AND jobs = 0"},
  });
}

absl::Status SpecUses::Write(SpecTable* specs) {
  for (const auto& [row, change] : changes_) {
    absl::Status status = add_.Start().Bind(row).Bind(change).Run();
    if (status.ok() && change <= 0) {
      status = drop_.Start().Bind(row).Run();
      if (status.ok() && database_->changes() > 0) status = specs->Drop(row);
    }
    if (!status.ok()) return status;
  }
  changes_.clear();
  return absl::OkStatus();
}

}  // namespace muster::store
