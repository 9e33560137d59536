#include "broker/core/dependencies.h"

#include <algorithm>

#include "contract/dependencies.h"

namespace muster::core {

void Dependencies::Add(uint64_t job, std::vector<Need> needs) {
  if (needs.empty()) return;
  for (const Need& need : needs) edges_.emplace(need.job, job);
  waiting_.emplace(job, std::move(needs));
}

void Dependencies::Remove(uint64_t job) {
  const auto found = waiting_.find(job);
  if (found == waiting_.end()) return;
  for (const Need& need : found->second) edges_.erase({need.job, job});
  waiting_.erase(found);
}

void Dependencies::JobEnded(uint64_t job, v1::JobState end) {
  // Most jobs wait for none, and none waits for them.
  if (waiting_.empty()) return;
  Remove(job);
  const auto first = edges_.lower_bound({job, 0});
  if (first != edges_.end() && first->first == job) ended_.emplace_back(job, end);
}

std::optional<Dependencies::Verdict> Dependencies::Next(int* budget) {
  while (!ended_.empty() && *budget > 0) {
    const auto [awaited, end] = ended_.front();
    const auto edge = edges_.lower_bound({awaited, 0});
    if (edge == edges_.end() || edge->first != awaited) {
      ended_.pop_front();
      continue;
    }
    --*budget;
    const uint64_t job = edge->second;
    edges_.erase(edge);
    const auto found = waiting_.find(job);
    std::vector<Need>& needs = found->second;
    const auto mine = std::partition(needs.begin(), needs.end(),
                                     [job = awaited](const Need& need) { return need.job != job; });
    const auto unmet = std::find_if(mine, needs.end(), [end = end](const Need& need) {
      return !contract::Meets(end, need.outcome);
    });
    const Need decisive = unmet == needs.end() ? needs.back() : *unmet;
    const bool is_met = unmet == needs.end();
    needs.erase(mine, needs.end());
    if (is_met && !needs.empty()) continue;
    if (is_met) waiting_.erase(found);
    return Verdict{job, is_met, decisive, end};
  }
  return std::nullopt;
}

bool Dependencies::IsBeingJudged(uint64_t job) const {
  return std::any_of(ended_.begin(), ended_.end(),
                     [job](const auto& one) { return one.first == job; });
}

absl::Status Dependencies::CheckEdges() const {
  absl::btree_set<Edge> needed;
  for (const auto& [job, left] : waiting_) {
    if (left.empty()) return absl::InternalError("a job waits for no other one");
    for (const Need& need : left) needed.emplace(need.job, job);
  }
  return needed == edges_ ? absl::OkStatus()
                          : absl::InternalError("a job waits for one that does not know of it");
}

}  // namespace muster::core
