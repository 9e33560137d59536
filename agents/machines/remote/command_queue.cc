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

template <typename Rank>
bool IsOf(const Rank& rank, const RankStop& stop) {
  return rank.run_key == stop.run_key && rank.rank == stop.rank;
}

// Returns the start that the stop is for, out of the queue.
std::optional<RankStart> Take(const RankStop& stop, std::deque<RankStart>* starts) {
  const auto found = std::find_if(starts->begin(), starts->end(),
                                  [&](const RankStart& start) { return IsOf(start, stop); });
  if (found == starts->end()) return std::nullopt;
  RankStart start = std::move(*found);
  starts->erase(found);
  return start;
}

}  // namespace

void CommandQueue::Push(RankStart start) {
  const bool has_files = start.job != nullptr && start.job->uploads_size() > 0;
  (has_files && !start.is_prepared ? layouts_ : starts_).push_back(std::move(start));
}

std::optional<RankStart> CommandQueue::Push(RankStop stop) {
  std::optional<RankStart> start = Take(stop, &starts_);
  if (!start.has_value()) start = Take(stop, &layouts_);
  if (laying_out_.has_value() && IsOf(*laying_out_, stop)) is_layout_wanted_ = false;
  stops_.push_back(std::move(stop));
  return start;
}

RankStart CommandQueue::BeginLayout() {
  RankStart start = TakeFirst(&layouts_);
  laying_out_ = {.run_key = start.run_key, .rank = start.rank, .sent = start.sent};
  is_layout_wanted_ = true;
  return start;
}

bool CommandQueue::EndLayout() {
  laying_out_.reset();
  return is_layout_wanted_;
}

std::optional<FilesSent> CommandQueue::LayoutOf(const std::string& run_key, size_t rank) const {
  const auto is_it = [&](const auto& one) { return one.run_key == run_key && one.rank == rank; };
  if (laying_out_.has_value() && is_it(*laying_out_)) return laying_out_->sent;
  const auto found = std::find_if(layouts_.begin(), layouts_.end(), is_it);
  if (found == layouts_.end()) return std::nullopt;
  return found->sent;
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
  if (!starts_.empty() && cleans_.size() < kCleanBatch) return TakeFirst(&starts_);
  if (!cleans_.empty()) return PopCleans();
  is_swept_ = false;
  return SweepCommand{};
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
