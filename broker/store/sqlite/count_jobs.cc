// Implements Reader::CountJobs, in one pass over the jobs that the filter takes.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "broker/store/count_groups.h"
#include "broker/store/sqlite/filter_sql.h"
#include "broker/store/sqlite/reader.h"

namespace muster::store {
namespace {

std::string_view ColumnOf(v1::JobGrouping grouping) {
  switch (grouping) {
    case v1::JOB_GROUPING_STATE:
      return "j.state";
    case v1::JOB_GROUPING_CLUSTER:
      return "j.cluster";
    case v1::JOB_GROUPING_LABEL:
      return "muster_label(j.labels, ?)";
    case v1::JOB_GROUPING_USER:
      return "j.user";
    default:
      return "j.project";
  }
}

void Fill(const Statement& row, const std::vector<v1::JobGrouping>& group_by, v1::JobCount* out) {
  int column = 0;
  for (const v1::JobGrouping grouping : group_by) {
    const std::string text(row.Text(column));
    switch (grouping) {
      case v1::JOB_GROUPING_STATE:
        out->set_state(static_cast<v1::JobState>(row.Int(column)));
        break;
      case v1::JOB_GROUPING_CLUSTER:
        out->set_cluster(text);
        break;
      case v1::JOB_GROUPING_LABEL:
        if (!row.IsNull(column)) out->set_label_value(text);
        break;
      case v1::JOB_GROUPING_USER:
        out->set_user(text);
        break;
      default:
        out->set_project(text);
        break;
    }
    ++column;
  }
}

}  // namespace

absl::StatusOr<JobCounts> Reader::CountJobs(const Scope& scope, const CountQuery& query) {
  // Several columns of one index are read without the table, so only the needed ones are named.
  std::string columns = query.group_by.empty() ? "1" : "";
  for (const v1::JobGrouping grouping : query.group_by) {
    columns += fmt::format("{}{}", columns.empty() ? "" : ", ", ColumnOf(grouping));
  }
  const SqlCondition condition = ConditionOf(scope.Narrow(query.filter));
  // Each filter makes another statement, so it is not kept.
  absl::StatusOr<Statement> rows =
      database_->Prepare(fmt::format("SELECT {} FROM job j WHERE {}", columns, condition.text));
  if (!rows.ok()) return rows.status();
  rows->Start();
  const bool has_label = std::find(query.group_by.begin(), query.group_by.end(),
                                   v1::JOB_GROUPING_LABEL) != query.group_by.end();
  if (has_label) rows->Bind(std::string_view(query.label));
  BindAll(condition.values, &*rows);
  CountGroups groups(query.limit);
  while (true) {
    absl::StatusOr<bool> row = rows->Step();
    if (!row.ok()) return row.status();
    if (!*row) break;
    v1::JobCount group;
    Fill(*rows, query.group_by, &group);
    if (!groups.Add(std::move(group))) break;
  }
  return groups.Take();
}

}  // namespace muster::store
