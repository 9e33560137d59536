#include "clients/cli/count_table.h"

#include <fmt/format.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "clients/cli/text.h"
#include "contract/states.h"

namespace muster::cli {
namespace {

std::string Heading(v1::JobGrouping grouping, const std::string& label) {
  if (grouping == v1::JOB_GROUPING_LABEL) return OneLine(label);
  return v1::JobGrouping_Name(grouping).substr(std::string_view("JOB_GROUPING_").size());
}

Cell CellOf(v1::JobGrouping grouping, const v1::JobCount& count) {
  const auto text = [](const std::string& value) {
    return Cell{value.empty() ? "-" : OneLine(value)};
  };
  switch (grouping) {
    case v1::JOB_GROUPING_STATE:
      return {std::string(contract::Name(count.state())), ColourOf(count.state())};
    case v1::JOB_GROUPING_CLUSTER:
      return text(count.cluster());
    case v1::JOB_GROUPING_LABEL:
      return text(count.label_value());
    case v1::JOB_GROUPING_USER:
      return text(count.user());
    default:
      return text(count.project());
  }
}

}  // namespace

std::string CountTable(const v1::CountJobsRequest& request, const v1::CountJobsResponse& response,
                       const Style& style) {
  std::vector<Table::Column> columns;
  for (const int grouping : request.group_by()) {
    columns.push_back({Heading(static_cast<v1::JobGrouping>(grouping), request.label())});
  }
  columns.push_back({.heading = "JOBS", .right = true});
  Table table(std::move(columns), style.look());
  for (const v1::JobCount& count : response.counts()) {
    Table::Row row;
    for (const int grouping : request.group_by()) {
      row.push_back(CellOf(static_cast<v1::JobGrouping>(grouping), count));
    }
    row.push_back({fmt::format("{}", count.count())});
    table.Add(std::move(row));
  }
  if (response.counts_size() != 1 && !(style.csv && request.group_by_size() > 0)) {
    Table::Row total(request.group_by_size());
    if (!total.empty()) total[0] = {"total"};
    total.push_back({fmt::format("{}", response.total())});
    table.Add(std::move(total));
  }
  return table.Take();
}

}  // namespace muster::cli
