#include "agents/muster/call_all.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace muster::remote {

void CallAll(size_t count, const std::function<void(size_t)>& call) {
  std::atomic<size_t> next = 0;
  const auto work = [count, &call, &next] {
    for (size_t i = next++; i < count; i = next++) call(i);
  };
  std::vector<std::thread> others;
  others.reserve(kMaxCallsAtOnce);
  try {
    while (others.size() + 1 < std::min(count, kMaxCallsAtOnce)) others.emplace_back(work);
  } catch (const std::system_error&) {
    // The system has no more threads to give. Those that are here make all of the calls.
  }
  work();
  for (std::thread& other : others) other.join();
}

}  // namespace muster::remote
