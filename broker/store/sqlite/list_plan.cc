#include "broker/store/sqlite/list_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::store {
namespace {

using contract::Filter;
using Index = ListPlan::Index;

Index IndexFor(const Filter& restriction) {
  if (restriction.op != Filter::Op::kEq) return Index::kNone;
  switch (restriction.kind) {
    case Filter::Kind::kProject:
      return Index::kProject;
    case Filter::Kind::kState:
      return Index::kState;
    // Jobs without a cluster are not in its index.
    case Filter::Kind::kCluster:
      return restriction.value.empty() ? Index::kNone : Index::kCluster;
    case Filter::Kind::kName:
      return Index::kName;
    case Filter::Kind::kLabel:
      return Index::kLabel;
    default:
      return Index::kNone;
  }
}

void TakeTime(const Filter& restriction, ListPlan* plan) {
  const int64_t micros = absl::ToUnixMicros(restriction.time);
  // Both ends are taken in: the filter itself draws the line.
  switch (restriction.op) {
    case Filter::Op::kEq:
      plan->from_unix_micros = std::max(plan->from_unix_micros, micros);
      plan->to_unix_micros = std::min(plan->to_unix_micros, micros);
      break;
    case Filter::Op::kLt:
    case Filter::Op::kLe:
      plan->to_unix_micros = std::min(plan->to_unix_micros, micros);
      break;
    case Filter::Op::kGt:
    case Filter::Op::kGe:
      plan->from_unix_micros = std::max(plan->from_unix_micros, micros);
      break;
    case Filter::Op::kNe:
      break;
  }
}

void Take(const Filter& filter, ListPlan* plan) {
  if (filter.kind == Filter::Kind::kAnd) {
    for (const Filter& child : filter.children) Take(child, plan);
    return;
  }
  if (filter.kind == Filter::Kind::kCreateTime) return TakeTime(filter, plan);
  const Index index = IndexFor(filter);
  if (index <= plan->index) return;
  plan->index = index;
  plan->key = filter.key;
  plan->value = filter.value;
  plan->state = filter.state;
}

}  // namespace

ListPlan PlanFor(const contract::Filter& filter) {
  ListPlan plan;
  Take(filter, &plan);
  return plan;
}

std::string SqlFor(ListPlan::Index index, std::string_view columns) {
  constexpr std::string_view kFromJob =
      "SELECT {} FROM job j {} WHERE {} j.id < ? AND j.id >= ? ORDER BY j.id DESC";
  auto from_job = [&](std::string_view hint, std::string_view condition) {
    return fmt::format(fmt::runtime(kFromJob), columns, hint, condition);
  };
  switch (index) {
    case Index::kProject:
      return from_job("INDEXED BY job_by_project", "j.project = ? AND");
    case Index::kState:
      return from_job("INDEXED BY job_by_state", "j.state = ? AND");
    case Index::kName:
      return from_job("INDEXED BY job_by_name", "j.name = ? AND");
    case Index::kCluster:
      return from_job("INDEXED BY job_by_cluster", "j.cluster = ? AND j.cluster <> '' AND");
    case Index::kLabel:
      return fmt::format(
          "SELECT {} FROM label l CROSS JOIN job j ON j.id = l.job"
          " WHERE l.key = ? AND l.value = ? AND l.job < ? AND l.job >= ? ORDER BY l.job DESC",
          columns);
    case Index::kNone:
      return from_job("", "");
  }
  return "";
}

}  // namespace muster::store
