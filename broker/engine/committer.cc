#include "broker/engine/committer.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace muster::broker {
namespace {

template <typename T>
void MoveAppend(std::vector<T>& to, std::vector<T>&& from) {
  if (to.empty()) {
    to = std::move(from);
  } else {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  }
}

// What must be written, and what may have to be read before it is carried out.
size_t Rows(const core::Output& output) {
  size_t rows = output.changes.size();
  for (const core::Effect& effect : output.effects) {
    if (const auto* send = std::get_if<core::SendAssignments>(&effect)) {
      rows += send->assignments.size();
    }
  }
  return rows;
}

bool Empty(const core::Output& output) { return output.changes.empty() && output.effects.empty(); }

}  // namespace

Committer::Committer(Options options, store::Store* store, OnCommit on_commit, CarryOut carry_out,
                     OnFailure on_failure)
    : options_(options),
      store_(store),
      on_commit_(std::move(on_commit)),
      carry_out_(std::move(carry_out)),
      on_failure_(std::move(on_failure)) {}

Committer::~Committer() { Stop(); }

void Committer::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Committer::Offer(core::Output output) {
  if (Empty(output)) return;
  const size_t rows = Rows(output);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return failed_ || waiting_rows_ < options_.max_waiting_rows; });
  if (failed_) return;
  waiting_rows_ += rows;
  const bool wake = Empty(waiting_);
  MoveAppend(waiting_.changes, std::move(output.changes));
  MoveAppend(waiting_.effects, std::move(output.effects));
  lock.unlock();
  if (wake) changed_.notify_all();
}

Committer::Counts Committer::TakeCounts() {
  std::lock_guard lock(mutex_);
  Counts counts = counts_;
  counts_.most_rows = 0;
  return counts;
}

void Committer::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::optional<core::Output> Committer::Take(absl::Duration timeout) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout),
                    [this] { return stopping_ || !Empty(waiting_); });
  // Under the same lock as what is taken, so that no offer slips in between and is left behind.
  if (stopping_ && Empty(waiting_)) return std::nullopt;
  const bool was_full = std::exchange(waiting_rows_, 0) >= options_.max_waiting_rows;
  core::Output taken = std::exchange(waiting_, {});
  if (const uint64_t rows = taken.changes.size(); rows > 0) {
    ++counts_.commits;
    counts_.rows += rows;
    counts_.most_rows = std::max(counts_.most_rows, rows);
  }
  lock.unlock();
  if (was_full) changed_.notify_all();
  return taken;
}

void Committer::Run() {
  absl::Duration patience = options_.idle_after;
  while (std::optional<core::Output> output = Take(patience)) {
    if (!Empty(*output)) {
      if (!CommitAndCarryOut(*std::move(output))) return;
      patience = options_.idle_after;
      continue;
    }
    if (const absl::Status status = store_->Idle(); !status.ok()) return Fail(status);
    patience = options_.idle_interval;
  }
}

bool Committer::CommitAndCarryOut(core::Output output) {
  if (!output.changes.empty()) {
    on_commit_(true);
    const absl::Status status = store_->Commit(output.changes);
    on_commit_(false);
    if (!status.ok()) {
      Fail(status);
      return false;
    }
  }
  carry_out_(std::move(output));
  return true;
}

void Committer::Fail(const absl::Status& status) {
  {
    std::lock_guard lock(mutex_);
    failed_ = true;
  }
  changed_.notify_all();
  on_failure_(status);
}

}  // namespace muster::broker
