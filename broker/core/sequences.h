// Counts changes by their sequences. Pure; any thread.
#ifndef MUSTER_BROKER_CORE_SEQUENCES_H_
#define MUSTER_BROKER_CORE_SEQUENCES_H_

#include <cstdint>

namespace muster::core {

// A broker that starts leaves out so many sequences. A process can make fewer changes than this
// after its last transition. Releases before schema 9 did not store changes without a transition,
// so that a file that was taken over from one of them does not tell how many sequences were given
// out.
inline constexpr uint64_t kSequencesForgotten = 1'000'000'000;

// Returns how many changes there were after one sequence, up to another; those that were deleted
// count. Right for fewer than kSequencesForgotten, however often the broker has started meanwhile.
inline uint64_t ChangesBetween(uint64_t after, uint64_t up_to) {
  return up_to > after ? (up_to - after) % kSequencesForgotten : 0;
}

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_SEQUENCES_H_
