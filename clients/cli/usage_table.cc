#include "clients/cli/usage_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "clients/cli/table.h"
#include "clients/cli/text.h"

namespace muster::cli {
namespace {

std::string Hours(const google::protobuf::Duration& time) {
  const double seconds = static_cast<double>(time.seconds()) + time.nanos() / 1e9;
  return fmt::format("{:.2f}", seconds / 3600);
}

Cell GroupCell(v1::UsageGrouping grouping, const v1::Usage& usage) {
  const auto text = [](const std::string& value) {
    return Cell{value.empty() ? "-" : OneLine(value)};
  };
  switch (grouping) {
    case v1::USAGE_GROUPING_PROJECT:
      return text(usage.project());
    case v1::USAGE_GROUPING_USER:
      return text(usage.user());
    case v1::USAGE_GROUPING_CLUSTER:
      return text(usage.cluster());
    default:
      return {Rfc3339(usage.day()).substr(0, std::string_view("2026-01-31").size())};
  }
}

std::string Types(const v1::Usage& usage) {
  std::vector<std::string> parts;
  for (const auto& [type, time] : usage.gpu_time_by_type())
    parts.push_back(fmt::format("{} {}", type.empty() ? "any" : OneLine(type), Hours(time)));
  std::sort(parts.begin(), parts.end());
  return parts.empty() ? "-" : fmt::format("{}", fmt::join(parts, ", "));
}

void AddAmounts(const v1::Usage& usage, const Style& style, Table::Row* row) {
  row->push_back({fmt::format("{}", usage.runs())});
  row->push_back({Hours(usage.run_time())});
  row->push_back({Hours(usage.core_time())});
  row->push_back({Hours(usage.gpu_time())});
  if (style.wide) row->push_back({Types(usage)});
}

}  // namespace

std::string UsageTable(const v1::GetUsageRequest& request, const v1::GetUsageResponse& response,
                       const Style& style) {
  std::vector<Table::Column> columns;
  for (const int grouping : request.group_by()) {
    const auto& name = v1::UsageGrouping_Name(static_cast<v1::UsageGrouping>(grouping));
    columns.push_back({name.substr(std::string_view("USAGE_GROUPING_").size())});
  }
  for (const char* heading : {"RUNS", "RUN-HOURS", "CORE-HOURS", "GPU-HOURS"})
    columns.push_back({.heading = heading, .right = true});
  if (style.wide) columns.push_back({"GPU-HOURS BY TYPE"});
  Table table(std::move(columns), style.look());
  for (const v1::Usage& usage : response.rows()) {
    Table::Row row;
    for (const int grouping : request.group_by())
      row.push_back(GroupCell(static_cast<v1::UsageGrouping>(grouping), usage));
    AddAmounts(usage, style, &row);
    table.Add(std::move(row));
  }
  if (response.rows_size() != 1) {
    Table::Row total(request.group_by_size());
    if (!total.empty()) total[0] = {"total"};
    AddAmounts(response.total(), style, &total);
    table.Add(std::move(total));
  }
  return table.Take();
}

}  // namespace muster::cli
