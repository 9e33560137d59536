#include "broker/core/job_line.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <iterator>
#include <map>

#include "absl/container/flat_hash_set.h"

namespace muster::core {
namespace {

// Below this many marks a sweep is not worth its time.
constexpr size_t kSweepAt = 64;

}  // namespace

class JobLine::Many {
 public:
  void Push(Turn turn);
  void Remove(Turn turn);
  size_t size() const { return size_; }
  Turn front() const;

 private:
  void DropRemovedFront();
  void Sweep();

  std::map<int32_t, std::deque<uint64_t>, std::greater<>> lines_;  // none is empty
  absl::flat_hash_set<Turn> removed_;  // still in a line; never the first of the first line
  size_t size_ = 0;
};

void JobLine::Many::Push(Turn turn) {
  ++size_;
  // The job is back before its mark was swept.
  if (removed_.erase(turn) > 0) return;
  std::deque<uint64_t>& line = lines_[turn.priority];
  if (line.empty() || line.back() < turn.job) {
    line.push_back(turn.job);
  } else {
    line.insert(std::lower_bound(line.begin(), line.end(), turn.job), turn.job);
  }
}

void JobLine::Many::Remove(Turn turn) {
  --size_;
  removed_.insert(turn);
  DropRemovedFront();
  if (removed_.size() >= kSweepAt && removed_.size() > size_) Sweep();
}

Turn JobLine::Many::front() const {
  const auto& [priority, line] = *lines_.begin();
  return {priority, line.front()};
}

void JobLine::Many::DropRemovedFront() {
  while (!lines_.empty()) {
    auto& [priority, line] = *lines_.begin();
    while (!line.empty() && removed_.erase(Turn{priority, line.front()}) > 0) line.pop_front();
    if (!line.empty()) return;
    lines_.erase(lines_.begin());
  }
}

void JobLine::Many::Sweep() {
  for (auto it = lines_.begin(); it != lines_.end();) {
    std::erase_if(it->second, [this, priority = it->first](uint64_t job) {
      return removed_.contains(Turn{priority, job});
    });
    it = it->second.empty() ? lines_.erase(it) : std::next(it);
  }
  removed_.clear();
}

JobLine::JobLine() = default;
JobLine::~JobLine() = default;

void JobLine::Push(Turn turn) {
  if (empty()) {
    jobs_ = turn;
    return;
  }
  if (const Turn* one = std::get_if<Turn>(&jobs_)) {
    auto many = std::make_unique<Many>();
    many->Push(*one);
    jobs_ = std::move(many);
  }
  std::get<std::unique_ptr<Many>>(jobs_)->Push(turn);
}

void JobLine::Remove(Turn turn) {
  if (auto* many = std::get_if<std::unique_ptr<Many>>(&jobs_)) {
    (*many)->Remove(turn);
    if ((*many)->size() > 0) return;
  }
  jobs_ = std::monostate();
}

size_t JobLine::size() const {
  const auto* many = std::get_if<std::unique_ptr<Many>>(&jobs_);
  return many != nullptr ? (*many)->size() : empty() ? 0 : 1;
}

Turn JobLine::front() const {
  const auto* many = std::get_if<std::unique_ptr<Many>>(&jobs_);
  return many != nullptr ? (*many)->front() : std::get<Turn>(jobs_);
}

}  // namespace muster::core
