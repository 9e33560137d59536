// Orders the queued jobs of one group: higher priority first, then the lower id.
//
// A single job needs no memory beside the line itself, so that a million groups may have one each.
// Further jobs need 8 B each. A job that leaves from the middle leaves a mark behind, and the marks
// are swept once they are half of the line, so that a cancel costs O(1) in the long run. Owner: the
// core's thread.
#ifndef MUSTER_BROKER_CORE_JOB_LINE_H_
#define MUSTER_BROKER_CORE_JOB_LINE_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

namespace muster::core {

// A place in line. The smaller one is served first.
struct Turn {
  int32_t priority = 0;
  uint64_t job = 0;

  friend bool operator==(const Turn&, const Turn&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Turn& turn) {
    return H::combine(std::move(h), turn.priority, turn.job);
  }
  friend std::strong_ordering operator<=>(const Turn& a, const Turn& b) {
    if (a.priority != b.priority) return b.priority <=> a.priority;
    return a.job <=> b.job;
  }
};

class JobLine {
 public:
  JobLine();
  ~JobLine();
  JobLine(const JobLine&) = delete;
  JobLine& operator=(const JobLine&) = delete;

  // The job must not be in the line.
  void Push(Turn turn);
  // The job must be in the line.
  void Remove(Turn turn);

  bool empty() const { return std::holds_alternative<std::monostate>(jobs_); }
  size_t size() const;
  // The line must not be empty.
  Turn front() const;

 private:
  class Many;

  // Holds nothing, one job, or a line that has had several and has at least one.
  std::variant<std::monostate, Turn, std::unique_ptr<Many>> jobs_;
};

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_JOB_LINE_H_
