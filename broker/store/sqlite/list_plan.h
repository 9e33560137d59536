// How a filter is answered: through which index, and between which times.
#ifndef MUSTER_BROKER_STORE_SQLITE_LIST_PLAN_H_
#define MUSTER_BROKER_STORE_SQLITE_LIST_PLAN_H_

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "contract/filter.h"
#include "muster/v1/job.pb.h"

namespace muster::store {

// Every job that the filter takes is among those that the plan yields; the filter itself decides in
// the end.
struct ListPlan {
  enum class Index {
    kNone,
    kProject,
    kState,
    kCluster,
    kName,
    kLabel
  };  // the more selective, the later

  Index index = Index::kNone;
  std::string key;                                 // kLabel
  std::string value;                               // kProject, kCluster, kName, kLabel
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;  // kState

  int64_t from_unix_micros = std::numeric_limits<int64_t>::min();  // create_time, inclusive
  int64_t to_unix_micros = std::numeric_limits<int64_t>::max();    // inclusive

  bool has_times() const {
    return from_unix_micros != std::numeric_limits<int64_t>::min() ||
           to_unix_micros != std::numeric_limits<int64_t>::max();
  }
};

ListPlan PlanFor(const contract::Filter& filter);

// Jobs through the plan's index, newest first, in the columns of `columns` (of table job, named j).
// Parameters: the value or state (kLabel: key and value; kNone: none), then the ids: below, and not
// below.
std::string SqlFor(ListPlan::Index index, std::string_view columns);

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SQLITE_LIST_PLAN_H_
