#include "broker/core/inventory_times.h"

#include <string_view>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "broker/core/timestamps.h"

namespace muster::core {
namespace {

void KeepTimesOfPools(const v1::Inventory& before, absl::Time now, v1::Inventory* inventory) {
  absl::flat_hash_map<std::string_view, const v1::Pool*> known;
  for (const v1::Pool& pool : before.pools()) known.emplace(pool.name(), &pool);
  for (v1::Pool& pool : *inventory->mutable_pools()) {
    pool.clear_unavailable_since();
    const auto earlier = known.find(pool.name());
    if (pool.available() || earlier == known.end()) continue;
    if (earlier->second->available()) {
      SetTimestamp(now, pool.mutable_unavailable_since());
    } else if (earlier->second->has_unavailable_since()) {
      *pool.mutable_unavailable_since() = earlier->second->unavailable_since();
    }
  }
}

using IssueKey = std::tuple<v1::ClusterIssueCode, std::string_view, std::string_view>;

IssueKey KeyOf(const v1::ClusterIssue& issue) {
  return {issue.code(), issue.pool(), issue.subject()};
}

void KeepTimesOfIssues(const v1::Inventory& before, absl::Time now, v1::Inventory* inventory) {
  // An inventory has an identity; what is before a cluster's first one has none.
  const bool is_first = before.identity().empty();
  absl::flat_hash_map<IssueKey, const v1::ClusterIssue*> known;
  for (const v1::ClusterIssue& issue : before.issues()) known.emplace(KeyOf(issue), &issue);
  for (v1::ClusterIssue& issue : *inventory->mutable_issues()) {
    issue.clear_since();
    const auto earlier = known.find(KeyOf(issue));
    if (earlier == known.end()) {
      if (!is_first) SetTimestamp(now, issue.mutable_since());
    } else if (earlier->second->has_since()) {
      *issue.mutable_since() = earlier->second->since();
    }
  }
}

}  // namespace

void KeepTimes(const v1::Inventory& before, absl::Time now, v1::Inventory* inventory) {
  KeepTimesOfPools(before, now, inventory);
  KeepTimesOfIssues(before, now, inventory);
}

}  // namespace muster::core
