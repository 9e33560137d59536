// Several calls of the remote broker at the same time.
#ifndef MUSTER_AGENTS_MUSTER_CALL_ALL_H_
#define MUSTER_AGENTS_MUSTER_CALL_ALL_H_

#include <cstddef>
#include <functional>

namespace muster::remote {

// The most calls at a time: enough to hide the way to the other broker, and few of its threads.
inline constexpr size_t kMaxCallsAtOnce = 8;

// Calls `call` with 0 to count - 1, each once, on this thread and up to kMaxCallsAtOnce - 1 others,
// or fewer if the system gives no more; returns when all have ended. `call` must not throw.
void CallAll(size_t count, const std::function<void(size_t)>& call);

}  // namespace muster::remote

#endif  // MUSTER_AGENTS_MUSTER_CALL_ALL_H_
