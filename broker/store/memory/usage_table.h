// The use of ended runs by days, in memory.
#ifndef MUSTER_BROKER_STORE_MEMORY_USAGE_TABLE_H_
#define MUSTER_BROKER_STORE_MEMORY_USAGE_TABLE_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "broker/core/changes.h"
#include "broker/store/scope.h"
#include "broker/store/usage_query.h"

namespace muster::store {

class UsageTable {
 public:
  void Add(const core::AddUsage& change);
  UsageRows List(const Scope& scope, const UsageQuery& query) const;

 private:
  // Day, project, user, cluster and type of GPU.
  using Key = std::tuple<int64_t, std::string, std::string, std::string, std::string>;

  std::map<Key, core::AddUsage> rows_;
};

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_MEMORY_USAGE_TABLE_H_
