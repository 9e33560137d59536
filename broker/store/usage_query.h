// Asks a store for the use of ended runs by days.
#ifndef MUSTER_BROKER_STORE_USAGE_QUERY_H_
#define MUSTER_BROKER_STORE_USAGE_QUERY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "broker/core/changes.h"

namespace muster::store {

// Days are kept for three years, and a little more for comparisons with the same month.
inline constexpr int64_t kMaxUsageDays = 1100;

// Lists the parts of a use by which rows are told apart; the rest is added up, and empty.
struct UsageParts {
  bool project = false;
  bool user = false;
  bool cluster = false;
  bool day = false;
};

struct UsageQuery {
  int64_t first_day = 0;
  int64_t last_day = 0;
  // Empty: all.
  std::string project = {};
  std::string user = {};
  std::string cluster = {};
  UsageParts parts = {};
  size_t limit = 10'000;  // of rows
};

// The types of GPUs are always told apart.
struct UsageRows {
  std::vector<core::AddUsage> rows;  // by day, project, user, cluster and type
  bool is_over = false;              // there are more rows than the limit, which are left out
};

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_USAGE_QUERY_H_
