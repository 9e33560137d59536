// Orders the projects of all lanes as they are served in a round of placement. Pure.
#ifndef MUSTER_BROKER_CORE_SERVICE_TURN_H_
#define MUSTER_BROKER_CORE_SERVICE_TURN_H_

#include <cstdint>

#include "broker/core/waiting_tree.h"

namespace muster::core {

// Priority comes first, across all projects; then the project that has used less of its share,
// where projects with a parent count together at first; then age. The smaller one is served first.
struct ServiceTurn {
  int32_t priority = 0;
  double family_score = kNoScore;
  double score = kNoScore;
  uint64_t job = 0;

  friend bool operator==(const ServiceTurn&, const ServiceTurn&) = default;
  friend bool operator<(const ServiceTurn& a, const ServiceTurn& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    if (a.family_score != b.family_score) return a.family_score < b.family_score;
    if (a.score != b.score) return a.score < b.score;
    return a.job < b.job;
  }
};

// The list, of the project, must not be empty.
inline ServiceTurn ServiceTurnOf(const ProjectQueue& project, const ProjectQueue::List& list) {
  const Turn first = list.first_turn();
  return {.priority = first.priority,
          .family_score = project.account->root().family_score,
          .score = project.account->score,
          .job = first.job};
}

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_SERVICE_TURN_H_
