#include "agents/muster/call_all.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace muster::remote {

void CallAll(size_t count, const std::function<void(size_t)>& call) {
  std::atomic<size_t> next = 0;
  const auto work = [count, &call, &next] {
    for (size_t i = next++; i < count; i = next++) call(i);
  };
  std::vector<std::thread> others;
  while (others.size() + 1 < std::min(count, kMaxCallsAtOnce)) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
}

}  // namespace muster::remote
