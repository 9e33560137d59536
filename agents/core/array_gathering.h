// Runs that wait until all tasks of their job array are there, for clusters that take an array as
// one. One thread: the agent's core.
#ifndef MUSTER_AGENTS_CORE_ARRAY_GATHERING_H_
#define MUSTER_AGENTS_CORE_ARRAY_GATHERING_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::agents {

// The time that an array waits for its next task. The broker sends the tasks of an array one after
// the other. A task that does not come now may not come for hours: it was canceled meanwhile, or
// the cluster has no room.
inline constexpr absl::Duration kArrayPatience = absl::Seconds(2);

// Runs in the order of their arrival.
using OrderedRuns = std::map<uint64_t, std::string>;

// The first run of a task of an array of several, which is launched with the others; nothing if it
// is launched as it comes. A run that follows a failed one is alone.
struct ArrayMember {
  uint64_t array = 0;  // its number
  uint32_t tasks = 0;
};
std::optional<ArrayMember> ArrayMemberOf(const agent::v1::Assignment& assignment);

class ArrayGathering {
 public:
  // Returns all runs of the array if this one was the last that was missing.
  std::optional<OrderedRuns> Add(uint64_t order, const std::string& run_key,
                                 const ArrayMember& member, absl::Time now);
  void Erase(uint64_t order);
  bool Contains(uint64_t order) const { return array_of_.contains(order); }
  size_t size() const { return array_of_.size(); }

  // Takes out the arrays that have waited for long enough, each with the runs that are there.
  std::vector<OrderedRuns> TakeDue(absl::Time now);

 private:
  struct Array {
    OrderedRuns runs;
    absl::Time due;
  };
  OrderedRuns Take(std::map<uint64_t, Array>::iterator array);

  std::map<uint64_t, Array> arrays_;       // by number
  std::map<uint64_t, uint64_t> array_of_;  // by a run's order
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_ARRAY_GATHERING_H_
