// What the broker says of jobs in its queue that others look for.
#ifndef MUSTER_PROTO_CONTRACT_QUEUE_WORDS_H_
#define MUSTER_PROTO_CONTRACT_QUEUE_WORDS_H_

#include <string_view>

namespace muster::contract {

// Behind the name of a pool that has the nodes that a job needs.
inline constexpr std::string_view kTakesNoJobs = "takes no jobs at the moment";

// Whether a job waits for its pool alone: the cluster that the reason names first is the nearest to
// being right.
inline bool WaitsForPool(std::string_view reason) {
  const size_t words = reason.find(kTakesNoJobs);
  return words != reason.npos && words < reason.find("; cluster \"");
}

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_QUEUE_WORDS_H_
