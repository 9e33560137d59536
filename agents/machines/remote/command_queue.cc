#include "agents/machines/remote/command_queue.h"

#include <algorithm>
#include <utility>

namespace muster::machines {
namespace {

template <typename T>
T TakeFirst(std::deque<T>* queue) {
  T first = std::move(queue->front());
  queue->pop_front();
  return first;
}

}  // namespace

std::optional<RankStart> CommandQueue::Push(RankStop stop) {
  const auto found = std::find_if(starts_.begin(), starts_.end(), [&](const RankStart& start) {
    return start.run_key == stop.run_key && start.rank == stop.rank;
  });
  std::optional<RankStart> start;
  if (found != starts_.end()) {
    start = std::move(*found);
    starts_.erase(found);
  }
  stops_.push_back(std::move(stop));
  return start;
}

void CommandQueue::Clean(const std::string& directory, bool logs) {
  if (cleans_.size() + deferred_.size() < kMaxCleaning) cleans_[directory] |= logs;
}

void CommandQueue::Defer(const CleanCommand& clean) {
  for (const std::string& directory : clean.directories) deferred_[directory] |= clean.logs;
}

void CommandQueue::Resume() {
  for (const auto& [directory, logs] : deferred_) cleans_[directory] |= logs;
  deferred_.clear();
}

HostCommand CommandQueue::Pop() {
  if (!stops_.empty()) return TakeFirst(&stops_);
  if (std::exchange(is_asked_, false)) return QuestionCommand{};
  if (!starts_.empty() && cleans_.size() < kCleanBatch) return TakeFirst(&starts_);
  return PopCleans();
}

CleanCommand CommandQueue::PopCleans() {
  CleanCommand clean = {.directories = {}, .logs = cleans_.begin()->second};
  for (auto at = cleans_.begin(); at != cleans_.end() && clean.directories.size() < kCleanBatch;) {
    if (at->second != clean.logs) {
      ++at;
      continue;
    }
    clean.directories.push_back(at->first);
    at = cleans_.erase(at);
  }
  return clean;
}

}  // namespace muster::machines
