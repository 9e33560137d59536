#include "broker/store/sqlite/filter_sql.h"

#include <fmt/format.h>

#include <string_view>

#include "broker/core/changes.h"

namespace muster::store {
namespace {

using contract::Filter;
using Kind = Filter::Kind;

std::string_view Operator(Filter::Op op) {
  switch (op) {
    case Filter::Op::kEq:
      return "=";
    case Filter::Op::kNe:
      return "<>";
    case Filter::Op::kLt:
      return "<";
    case Filter::Op::kLe:
      return "<=";
    case Filter::Op::kGt:
      return ">";
    case Filter::Op::kGe:
      return ">=";
    case Filter::Op::kHas:
      break;
  }
  return "IS NOT NULL";
}

// Returns the SQL for the field of a restriction; NULL: the job does not have it.
std::string Expression(Kind kind) {
  switch (kind) {
    case Kind::kId:
      return "j.id";
    case Kind::kName:
      return "j.name";
    case Kind::kState:
      return "j.state";
    case Kind::kProject:
      return "j.project";
    case Kind::kUser:
      return "j.user";
    case Kind::kCluster:
      return "j.cluster";
    case Kind::kClusterKind:
      return "j.cluster_kind";
    case Kind::kPriority:
      return "j.priority";
    case Kind::kHeld:
      return fmt::format("(j.hold = {})", static_cast<int>(core::HoldState::kHeld));
    case Kind::kCancelRequested:
      return "j.cancel_requested";
    case Kind::kCreateTime:
      return "j.create_time";
    case Kind::kStartTime:
      return "j.start_time";
    case Kind::kEndTime:
      return "j.end_time";
    case Kind::kFailureClass:
      return "j.failure_class";
    case Kind::kExitCode:
      return "j.exit_code";
    case Kind::kLabel:
      return "muster_label(j.labels, ?)";
    default:
      return "";
  }
}

class Builder {
 public:
  SqlCondition Build(const Filter& filter) {
    Append(filter);
    return std::move(out_);
  }

 private:
  void Append(const Filter& filter) {
    switch (filter.kind) {
      case Kind::kAll:
        out_.text += "1";
        return;
      case Kind::kAnd:
        return AppendChain(filter, " AND ");
      case Kind::kOr:
        return AppendChain(filter, " OR ");
      case Kind::kNot:
        // A comparison with a missing value is false, not unknown.
        out_.text += "NOT ifnull(";
        Append(filter.children.front());
        out_.text += ", 0)";
        return;
      default:
        return AppendRestriction(filter);
    }
  }

  void AppendChain(const Filter& filter, std::string_view joint) {
    out_.text += '(';
    for (const Filter& child : filter.children) {
      if (&child != &filter.children.front()) out_.text += joint;
      Append(child);
    }
    out_.text += ')';
  }

  void AppendRestriction(const Filter& filter) {
    if (filter.kind == Kind::kLabel) out_.values.emplace_back(filter.key);
    if (filter.op == Filter::Op::kHas) {
      // A job without a run has an empty text as its cluster.
      out_.text += filter.kind == Kind::kCluster
                       ? "j.cluster <> ''"
                       : fmt::format("{} IS NOT NULL", Expression(filter.kind));
      return;
    }
    if (filter.is_pattern()) {
      out_.text += filter.op == Filter::Op::kEq ? "muster_matches(j.name, ?)"
                                                : "NOT muster_matches(j.name, ?)";
    } else {
      out_.text += fmt::format("{} {} ?", Expression(filter.kind), Operator(filter.op));
    }
    if (contract::IsText(filter.kind)) {
      out_.values.emplace_back(filter.value);
    } else {
      out_.values.emplace_back(filter.number);
    }
  }

  SqlCondition out_;
};

}  // namespace

void BindAll(const std::vector<SqlValue>& values, Statement* statement) {
  for (const SqlValue& value : values) {
    if (const int64_t* number = std::get_if<int64_t>(&value)) {
      statement->Bind(*number);
    } else {
      statement->Bind(std::string_view(std::get<std::string>(value)));
    }
  }
}

SqlCondition ConditionOf(const contract::Filter& filter) { return Builder().Build(filter); }

}  // namespace muster::store
