#include "broker/store/count_groups.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace muster::store {
namespace {

// Most groups in one answer. The other groups count in the total all the same.
constexpr size_t kMaxGroups = 1000;

}  // namespace

bool CountGroups::Add(v1::JobCount group) {
  if (total_ == limit_) {
    is_over_ = true;
    return false;
  }
  ++total_;
  ++counts_[group.SerializeAsString()];
  return true;
}

JobCounts CountGroups::Take() {
  std::vector<std::pair<std::string, uint64_t>> sorted(counts_.begin(), counts_.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  if (sorted.size() > kMaxGroups) sorted.resize(kMaxGroups);
  JobCounts out;
  out.total = total_;
  out.is_over = is_over_;
  for (const auto& [bytes, count] : sorted) {
    v1::JobCount& group = out.counts.emplace_back();
    group.ParseFromString(bytes);
    group.set_count(count);
  }
  return out;
}

}  // namespace muster::store
