#include "broker/core/inventory_times.h"

#include <string_view>
#include <tuple>
#include <utility>

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

// Numbers the issues that have the same key, in their order.
class Counter {
 public:
  std::pair<IssueKey, int> Next(const v1::ClusterIssue& issue) {
    const IssueKey key = KeyOf(issue);
    return {key, counts_[key]++};
  }

 private:
  absl::flat_hash_map<IssueKey, int> counts_;
};

void KeepTimesOfIssues(const v1::Inventory& before, absl::Time now, v1::Inventory* inventory) {
  // An inventory has an identity; what is before a cluster's first one has none.
  const bool is_first = before.identity().empty();
  absl::flat_hash_map<std::pair<IssueKey, int>, const v1::ClusterIssue*> known;
  Counter count_before, count_now;
  for (const v1::ClusterIssue& issue : before.issues())
    known.emplace(count_before.Next(issue), &issue);
  for (v1::ClusterIssue& issue : *inventory->mutable_issues()) {
    issue.clear_since();
    const auto earlier = known.find(count_now.Next(issue));
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
