// Chooses the runs that are launched next, in the order of their arrival, and how many at once.
// Runs that were added together are launched together, even if they are more than may be launched
// at once.
//
// Runs that bring files along stand in a line of their own where a backend wants few of those at
// once, so that they hold up no others. One thread: the agent's core.
#ifndef MUSTER_AGENTS_CORE_LAUNCH_QUEUE_H_
#define MUSTER_AGENTS_CORE_LAUNCH_QUEUE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace muster::agents {

class LaunchQueue {
 public:
  // A `max_with_files` of 0 gives them no line of their own.
  LaunchQueue(int max_launches, int max_with_files);

  // `order` is the run's place in the order of arrival, which no other run has.
  void Add(uint64_t order, const std::string& run_key, bool has_files);
  // Adds several that are launched together, at least one, by the order of their arrival.
  void AddTogether(std::map<uint64_t, std::string> runs, bool has_files);
  void Erase(uint64_t order);
  bool Contains(uint64_t order) const;
  size_t size() const;

  // Takes out the first runs that may be launched now: one, or those that were added together.
  // Empty: there is none.
  std::vector<std::string> Take();

  // A launch begins, of a run from here or another one, or has ended.
  void Begin(bool has_files) { ++LineOf(has_files).launches; }
  void End(bool has_files) { --LineOf(has_files).launches; }
  int launches() const;

 private:
  struct Line {
    int max_launches = 0;
    int launches = 0;  // under way
    // Those that go together, by the order of their first.
    std::map<uint64_t, std::map<uint64_t, std::string>> waiting = {};

    bool has_next() const { return !waiting.empty() && launches < max_launches; }
  };

  Line& LineOf(bool has_files) { return lines_[has_files && lines_[1].max_launches > 0 ? 1 : 0]; }

  std::array<Line, 2> lines_;  // of all, and of those with files
  // The place in its line at which a run waits, by its order.
  std::map<uint64_t, uint64_t> first_of_;
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_LAUNCH_QUEUE_H_
