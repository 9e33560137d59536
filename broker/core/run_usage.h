// The use of resources by runs that have ended, by days. Pure.
#ifndef MUSTER_BROKER_CORE_RUN_USAGE_H_
#define MUSTER_BROKER_CORE_RUN_USAGE_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "broker/core/changes.h"
#include "broker/core/requirements.h"
#include "muster/v1/job.pb.h"

namespace muster::core {

// Only the last days of a run count, so that a wrong start time costs a bounded number of rows. No
// cluster that we know lets a program run for longer.
inline constexpr int64_t kMaxDaysOfRun = 400;

// Returns the day of a time, since 1970, in UTC.
int64_t DayOf(int64_t unix_micros);

// The rows are told apart by day, project, user, cluster and type of GPU; uses that are alike in
// all of them are added up.
using UsageKey = std::tuple<int64_t, std::string, std::string, std::string, std::string>;
UsageKey KeyOf(const AddUsage& row);
// The sum keeps its key.
void AddTo(const AddUsage& row, AddUsage* sum);

// The uses of one commit: those that are added to the same row make one change.
class RunUsage {
 public:
  // Adds a run that has ended, of a job of that user. A run whose command never started has used
  // nothing, and is left out.
  void Add(const v1::Run& run, const Requirements& requirements, const std::string& user);
  std::vector<AddUsage> Take();

 private:
  AddUsage& RowOf(int64_t day, const v1::Run& run, const Requirements& requirements,
                  const std::string& user);

  std::map<UsageKey, AddUsage> rows_;
};

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_RUN_USAGE_H_
