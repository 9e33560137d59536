// The use of ended runs by days, in memory.
#ifndef MUSTER_BROKER_STORE_MEMORY_USAGE_TABLE_H_
#define MUSTER_BROKER_STORE_MEMORY_USAGE_TABLE_H_

#include <map>

#include "broker/core/changes.h"
#include "broker/core/run_usage.h"
#include "broker/store/scope.h"
#include "broker/store/usage_query.h"

namespace muster::store {

class UsageTable {
 public:
  void Add(const core::AddUsage& change);
  UsageRows List(const Scope& scope, const UsageQuery& query) const;

 private:
  std::map<core::UsageKey, core::AddUsage> rows_;
};

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_MEMORY_USAGE_TABLE_H_
