// What is said of jobs, in their reasons, that others look for.
#ifndef MUSTER_PROTO_CONTRACT_QUEUE_WORDS_H_
#define MUSTER_PROTO_CONTRACT_QUEUE_WORDS_H_

#include <string_view>

namespace muster::contract {

// Behind the name of a pool that has the nodes that a job needs.
inline constexpr std::string_view kTakesNoJobs = "takes no jobs at the moment";

// Of a cluster that could run a job.
inline constexpr std::string_view kAgentIsGone = "it fits, and its agent is not connected";

// Behind a host's name in the reason of a run that goes on there, as far as anyone knows.
inline constexpr std::string_view kHasNotAnswered = "has not answered since";

// Whether the words are said of the cluster that the reason names first, which is the nearest to
// having the job.
inline bool IsSaidOfTheNearest(std::string_view words, std::string_view reason) {
  const size_t at = reason.find(words);
  return at != reason.npos && at < reason.find("; cluster \"");
}

// Whether a job waits for its pool alone.
inline bool WaitsForPool(std::string_view reason) {
  return IsSaidOfTheNearest(kTakesNoJobs, reason);
}

// Whether a job waits until an agent connects.
inline bool WaitsForAgent(std::string_view reason) {
  return IsSaidOfTheNearest(kAgentIsGone, reason);
}

// Whether a run's host is silent.
inline bool SaysHostIsSilent(std::string_view reason) {
  return reason.find(kHasNotAnswered) != reason.npos;
}

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_QUEUE_WORDS_H_
