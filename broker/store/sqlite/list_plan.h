// Plans how a list of jobs is read: through which index, between which numbers and times. The plan
// yields all jobs that the filter takes, and maybe more; the filter itself decides in the end.
#ifndef MUSTER_BROKER_STORE_SQLITE_LIST_PLAN_H_
#define MUSTER_BROKER_STORE_SQLITE_LIST_PLAN_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/store/sqlite/filter_sql.h"
#include "contract/filter.h"
#include "contract/job_order.h"

namespace muster::store {

// Rows of table job, named j, that are read through one index.
struct Access {
  std::string from;   // FROM, with the index's needs
  std::string where;  // a condition; not empty
  std::vector<SqlValue> values = {};
  std::string id = "j.id";  // the job's number, as the index has it
};

// Numbers from `first` on and below `end`. SQLite's integers have a sign.
struct IdRange {
  uint64_t first = 0;
  uint64_t end = std::numeric_limits<int64_t>::max();
};

struct ListPlan {
  // Each yields its jobs in the order of their numbers, and together they yield each job once.
  // There is one for each state that the filter names; never empty.
  std::vector<Access> by_id;
  bool is_narrow = false;  // by_id leaves jobs out
  // Yields its jobs in another order.
  std::optional<Access> by_range;

  IdRange ids;
  int64_t from_unix_micros = std::numeric_limits<int64_t>::min();  // create_time, inclusive
  int64_t to_unix_micros = std::numeric_limits<int64_t>::max();    // inclusive

  bool has_times() const {
    return from_unix_micros != std::numeric_limits<int64_t>::min() ||
           to_unix_micros != std::numeric_limits<int64_t>::max();
  }
};

ListPlan PlanFor(const contract::Filter& filter);

// A part of an ordered list. The parts of a list come one after the other.
struct Walk {
  // Rows that the part's query yields, but that belong to another part.
  enum class Skip { kNone, kThoseWithField, kThoseWithPriority };

  std::string sql;  // FROM to ORDER BY
  std::vector<SqlValue> values;
  Skip skip = Skip::kNone;
};

// Plans all jobs in this order, which is not by number; `after`: only jobs after this place.
std::vector<Walk> WalksFor(const contract::JobOrder& order,
                           const std::optional<contract::JobPlace>& after);

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SQLITE_LIST_PLAN_H_
