#include "broker/store/sqlite/list_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster::store {
namespace {

using contract::Filter;
using contract::JobOrder;
using contract::JobPlace;
using Kind = Filter::Kind;

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

// Lists the ranks in order: the later, the more selective.
enum class Rank { kNone, kProject, kUser, kStates, kCluster, kFailure, kPriority, kName, kLabel };

struct Candidate {
  Rank rank = Rank::kNone;
  std::vector<Access> accesses = {};
};

Access Through(std::string_view index, std::string_view where, SqlValue value) {
  return {.from = fmt::format("FROM job j INDEXED BY {}", index),
          .where = std::string(where),
          .values = {std::move(value)}};
}

Access OfState(int64_t state) { return Through("job_by_state", "j.state = ?", state); }

Candidate ForEquality(const Filter& filter) {
  switch (filter.kind) {
    case Kind::kProject:
      return {Rank::kProject, {Through("job_by_project", "j.project = ?", filter.value)}};
    case Kind::kUser:
      return {Rank::kUser, {Through("job_by_user", "j.user = ?", filter.value)}};
    case Kind::kState:
      return {Rank::kStates, {OfState(filter.number)}};
    case Kind::kCluster:
      // The index has no jobs without a cluster.
      if (filter.value.empty()) return {};
      return {Rank::kCluster,
              {Through("job_by_cluster", "j.cluster = ? AND j.cluster <> ''", filter.value)}};
    case Kind::kFailureClass:
      return {Rank::kFailure,
              {Through("job_by_failure", "j.failure_class = ? AND j.failure_class IS NOT NULL",
                       filter.number)}};
    case Kind::kExitCode:
      // These indexes do not have jobs with the most frequent number, either.
      if (filter.number == 0) return {};
      return {Rank::kFailure,
              {Through("job_by_exit_code", "j.exit_code = ? AND j.exit_code <> 0", filter.number)}};
    case Kind::kPriority:
      if (filter.number == 0) return {};
      return {Rank::kPriority,
              {Through("job_by_priority", "j.priority = ? AND j.priority <> 0", filter.number)}};
    case Kind::kName:
      if (filter.is_pattern()) return {};
      return {Rank::kName, {Through("job_by_name", "j.name = ?", filter.value)}};
    case Kind::kLabel:
      return {Rank::kLabel,
              {{.from = "FROM label l CROSS JOIN job j ON j.id = l.job",
                .where = "l.key = ? AND l.value = ?",
                .values = {filter.key, filter.value},
                .id = "l.job"}}};
    default:
      return {};
  }
}

// Plans `state = A OR state = B`.
Candidate ForStates(const Filter& either) {
  Candidate candidate{Rank::kStates};
  std::vector<int64_t> states;
  for (const Filter& child : either.children) {
    if (child.kind != Kind::kState || child.op != Filter::Op::kEq) return {};
    if (std::find(states.begin(), states.end(), child.number) != states.end()) continue;
    states.push_back(child.number);
    candidate.accesses.push_back(OfState(child.number));
  }
  return candidate;
}

// Includes both ends: the filter itself excludes them if it must.
void Narrow(const Filter& filter, int64_t* from, int64_t* to) {
  const bool is_lower = filter.op == Filter::Op::kGt || filter.op == Filter::Op::kGe;
  const bool is_upper = filter.op == Filter::Op::kLt || filter.op == Filter::Op::kLe;
  const bool is_equal = filter.op == Filter::Op::kEq;
  if (is_lower || is_equal) *from = std::max(*from, filter.number);
  if (is_upper || is_equal) *to = std::min(*to, filter.number);
}

class Planner {
 public:
  ListPlan Plan(const Filter& filter) {
    Take(filter);
    ListPlan& plan = plan_;
    plan.is_narrow = best_.rank != Rank::kNone;
    plan.by_id = std::move(best_.accesses);
    if (!plan.is_narrow) plan.by_id.push_back({.from = "FROM job j", .where = "1"});
    const int64_t first = std::max<int64_t>(first_id_, 0);
    plan.ids.first = static_cast<uint64_t>(first);
    if (last_id_ < kMax) plan.ids.end = static_cast<uint64_t>(std::max(first, last_id_ + 1));
    // The end time is more selective than the start time, because running jobs have started, too.
    if (end_from_ != kMin || end_to_ != kMax) {
      plan.by_range = Between("job_by_end", "j.end_time", end_from_, end_to_);
    } else if (start_from_ != kMin || start_to_ != kMax) {
      plan.by_range = Between("job_by_start", "j.start_time", start_from_, start_to_);
    } else if (!name_prefix_.empty()) {
      plan.by_range = WithPrefix();
    }
    return std::move(plan_);
  }

 private:
  static Access Between(std::string_view index, std::string_view column, int64_t from, int64_t to) {
    Access access =
        Through(index, fmt::format("{0} >= ? AND {0} <= ? AND {0} IS NOT NULL", column), from);
    access.values.emplace_back(to);
    return access;
  }

  Access WithPrefix() const {
    Access access = Through("job_by_name", "j.name >= ? AND j.name < ?", name_prefix_);
    // UTF-8 never uses the highest byte, so that the increment cannot overflow.
    std::string end = name_prefix_;
    end.back() = static_cast<char>(end.back() + 1);
    access.values.emplace_back(std::move(end));
    return access;
  }

  void Take(const Filter& filter) {
    switch (filter.kind) {
      case Kind::kAnd:
        for (const Filter& child : filter.children) Take(child);
        return;
      case Kind::kOr:
        return Consider(ForStates(filter));
      case Kind::kId:
        return Narrow(filter, &first_id_, &last_id_);
      case Kind::kCreateTime:
        return Narrow(filter, &plan_.from_unix_micros, &plan_.to_unix_micros);
      case Kind::kStartTime:
        return Narrow(filter, &start_from_, &start_to_);
      case Kind::kEndTime:
        return Narrow(filter, &end_from_, &end_to_);
      default:
        break;
    }
    if (filter.op != Filter::Op::kEq) return;
    if (filter.is_pattern()) name_prefix_ = filter.value.substr(0, filter.value.find('*'));
    Consider(ForEquality(filter));
  }

  void Consider(Candidate candidate) {
    if (candidate.rank > best_.rank) best_ = std::move(candidate);
  }

  ListPlan plan_;
  Candidate best_;
  int64_t first_id_ = 0, last_id_ = kMax;
  int64_t start_from_ = kMin, start_to_ = kMax;
  int64_t end_from_ = kMin, end_to_ = kMax;
  std::string name_prefix_;
};

// Makes the walks of one list.
class Walker {
 public:
  Walker(const JobOrder& order, const std::optional<JobPlace>& after)
      : after_(after),
        beyond_(order.descending ? "<" : ">"),
        direction_(order.descending ? "DESC" : "ASC") {}

  // Adds the jobs of the condition, by the column and then by number. `after_key` is the value from
  // which to go on; null: from the first one.
  void AddIndexed(std::string_view index, std::string_view column, std::string_view where,
                  const SqlValue* after_key) {
    const auto add = [&](std::string_view condition, std::string_view order,
                         std::vector<SqlValue> values) {
      walks.push_back({.sql = fmt::format("FROM job j INDEXED BY {} WHERE {} {} ORDER BY {}", index,
                                          where, condition, order),
                       .values = std::move(values)});
    };
    const std::string by_number = fmt::format("j.id {}", direction_);
    const std::string by_both = fmt::format("{} {}, {}", column, direction_, by_number);
    if (after_key == nullptr) return add("", by_both, {});
    add(fmt::format("AND {} = ? AND j.id {} ?", column, beyond_), by_number,
        {*after_key, static_cast<int64_t>(after_->id)});
    add(fmt::format("AND {} {} ?", column, beyond_), by_both, {*after_key});
  }

  // Adds all jobs by number; `begins` says whether the place to go on from is among them.
  void AddTable(bool begins, Walk::Skip skip) {
    Walk& walk = walks.emplace_back();
    walk.skip = skip;
    const std::string where = begins ? fmt::format("WHERE j.id {} ?", beyond_) : "";
    if (begins) walk.values = {static_cast<int64_t>(after_->id)};
    walk.sql = fmt::format("FROM job j {} ORDER BY j.id {}", where, direction_);
  }

  std::vector<Walk> walks;

 private:
  const std::optional<JobPlace>& after_;
  const std::string_view beyond_, direction_;
};

// Adds jobs with the field, then those without it.
void AddByTime(std::string_view index, std::string_view column,
               const std::optional<JobPlace>& after, Walker* walker) {
  const bool is_beyond = after && after->is_absent;
  if (!is_beyond) {
    const SqlValue key = after ? after->number : int64_t{0};
    walker->AddIndexed(index, column, fmt::format("{} IS NOT NULL", column),
                       after ? &key : nullptr);
  }
  walker->AddTable(is_beyond, Walk::Skip::kThoseWithField);
}

// Most jobs have the priority 0 and are not in the index of priorities.
void AddByPriority(const JobOrder& order, const std::optional<JobPlace>& after, Walker* walker) {
  const auto sign = [&order](int64_t priority) {
    const int up = priority > 0 ? 1 : priority < 0 ? -1 : 0;
    return order.descending ? -up : up;  // the order of the parts
  };
  const int begin = after ? sign(after->number) : -1;
  for (int part = begin; part <= 1; ++part) {
    const bool begins = after && part == begin;
    if (part == 0) {
      walker->AddTable(begins, Walk::Skip::kThoseWithPriority);
      continue;
    }
    const bool is_positive = (part == 1) != order.descending;
    const SqlValue key = begins ? after->number : int64_t{0};
    walker->AddIndexed("job_by_priority", "j.priority",
                       fmt::format("j.priority <> 0 AND j.priority {} 0", is_positive ? ">" : "<"),
                       begins ? &key : nullptr);
  }
}

}  // namespace

ListPlan PlanFor(const contract::Filter& filter) { return Planner().Plan(filter); }

std::vector<Walk> WalksFor(const contract::JobOrder& order,
                           const std::optional<contract::JobPlace>& after) {
  Walker walker(order, after);
  switch (order.field) {
    case JobOrder::Field::kStartTime:
      AddByTime("job_by_start", "j.start_time", after, &walker);
      break;
    case JobOrder::Field::kEndTime:
      AddByTime("job_by_end", "j.end_time", after, &walker);
      break;
    case JobOrder::Field::kPriority:
      AddByPriority(order, after, &walker);
      break;
    case JobOrder::Field::kName: {
      const SqlValue key = after ? after->text : std::string();
      walker.AddIndexed("job_by_name", "j.name", "1", after ? &key : nullptr);
      break;
    }
    case JobOrder::Field::kId:
      walker.AddTable(after.has_value(), Walk::Skip::kNone);
      break;
  }
  return std::move(walker.walks);
}

}  // namespace muster::store
