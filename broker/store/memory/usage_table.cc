#include "broker/store/memory/usage_table.h"

#include <utility>

namespace muster::store {
namespace {

bool Takes(const UsageQuery& query, const core::AddUsage& row) {
  const auto is = [](const std::string& asked, const std::string& value) {
    return asked.empty() || asked == value;
  };
  return row.day >= query.first_day && row.day <= query.last_day &&
         is(query.project, row.project) && is(query.user, row.user) &&
         is(query.cluster, row.cluster);
}

// Returns the row without the parts that are not asked for.
core::AddUsage Coarse(core::AddUsage row, const UsageParts& parts) {
  if (!parts.day) row.day = 0;
  if (!parts.project) row.project.clear();
  if (!parts.user) row.user.clear();
  if (!parts.cluster) row.cluster.clear();
  return row;
}

}  // namespace

void UsageTable::Add(const core::AddUsage& change) {
  const auto [at, is_new] = rows_.try_emplace(KeyOf(change), change);
  if (!is_new) AddTo(change, &at->second);
  const int64_t newest = std::get<0>(rows_.rbegin()->first);
  rows_.erase(rows_.begin(), rows_.lower_bound({newest - kMaxUsageDays + 1, "", "", "", ""}));
}

UsageRows UsageTable::List(const Scope& scope, const UsageQuery& query) const {
  std::map<core::UsageKey, core::AddUsage> sums;
  for (const auto& [key, row] : rows_) {
    if (!Takes(query, row) || !scope.Contains(row.project, row.user)) continue;
    core::AddUsage coarse = Coarse(row, query.parts);
    core::UsageKey coarse_key = KeyOf(coarse);
    const auto [at, is_new] = sums.try_emplace(std::move(coarse_key), std::move(coarse));
    if (!is_new) AddTo(row, &at->second);
  }
  UsageRows found;
  for (auto& [key, row] : sums) {
    found.is_over = found.rows.size() == query.limit;
    if (found.is_over) break;
    found.rows.push_back(std::move(row));
  }
  return found;
}

}  // namespace muster::store
