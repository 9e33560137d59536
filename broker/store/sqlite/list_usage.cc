// Implements Reader::ListUsage, in one pass over the rows of the days.
#include <fmt/format.h>

#include <utility>

#include "broker/store/sqlite/filter_sql.h"
#include "broker/store/sqlite/reader.h"

namespace muster::store {
namespace {

using contract::Filter;

Filter Only(Filter::Kind kind, const std::string& value, Filter rest) {
  if (value.empty()) return rest;
  Filter one;
  one.kind = kind;
  one.value = value;
  return contract::And(std::move(rest), std::move(one));
}

std::string Columns(const UsageParts& parts) {
  const auto part = [](bool is_asked, std::string_view column, std::string_view none) {
    return std::string(is_asked ? column : none);
  };
  return fmt::format("{}, {}, {}, {}, gpu_type", part(parts.day, "day", "0"),
                     part(parts.project, "project", "''"), part(parts.user, "user", "''"),
                     part(parts.cluster, "cluster", "''"));
}

core::AddUsage RowOf(const Statement& row) {
  return {.day = row.Int(0),
          .project = std::string(row.Text(1)),
          .user = std::string(row.Text(2)),
          .cluster = std::string(row.Text(3)),
          .gpu_type = std::string(row.Text(4)),
          .runs = row.Int(5),
          .run_ms = row.Int(6),
          .core_ms = row.Int(7),
          .gpu_ms = row.Int(8)};
}

}  // namespace

absl::StatusOr<UsageRows> Reader::ListUsage(const Scope& scope, const UsageQuery& query) {
  Filter filter = Only(Filter::Kind::kProject, query.project, {});
  filter = Only(Filter::Kind::kUser, query.user, std::move(filter));
  filter = Only(Filter::Kind::kCluster, query.cluster, std::move(filter));
  const SqlCondition condition = ConditionOf(scope.Narrow(std::move(filter)));
  // Each filter makes another statement, so it is not kept.
  absl::StatusOr<Statement> rows = database_->Prepare(
      fmt::format("SELECT {}, sum(runs), sum(run_ms), sum(core_ms), sum(gpu_ms) FROM day_usage j"
                  " WHERE day >= ? AND day <= ? AND ({}) GROUP BY 1, 2, 3, 4, 5"
                  " ORDER BY 1, 2, 3, 4, 5 LIMIT ?",
                  Columns(query.parts), condition.text));
  if (!rows.ok()) return rows.status();
  rows->Start().Bind(query.first_day).Bind(query.last_day);
  BindAll(condition.values, &*rows);
  rows->Bind(uint64_t{query.limit + 1});
  UsageRows found;
  while (true) {
    absl::StatusOr<bool> row = rows->Step();
    if (!row.ok()) return row.status();
    if (!*row) return found;
    if (found.rows.size() == query.limit) {
      found.is_over = true;
      return found;
    }
    found.rows.push_back(RowOf(*rows));
  }
}

}  // namespace muster::store
