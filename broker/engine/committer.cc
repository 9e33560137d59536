#include "broker/engine/committer.h"

#include <algorithm>
#include <utility>

#include "sync/mutex.h"

namespace muster::broker {

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
  if (IsEmpty(output)) return;
  MutexLock lock(mutex_);
  while (!failed_ && waiting_.rows() >= options_.max_waiting_rows) lock.Wait(changed_);
  if (failed_) return;
  const bool wake = waiting_.empty();
  waiting_.Add(std::move(output));
  lock.Unlock();
  if (wake) changed_.notify_all();
}

Committer::Counts Committer::TakeCounts() {
  const MutexLock lock(mutex_);
  Counts counts = counts_;
  counts_.most_rows = 0;
  return counts;
}

Committer::Counts Committer::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

size_t Committer::waiting_rows() const {
  const MutexLock lock(mutex_);
  return waiting_.rows();
}

void Committer::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::optional<core::Output> Committer::Take(absl::Duration timeout) {
  MutexLock lock(mutex_);
  const auto due = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(timeout);
  while (!stopping_ && waiting_.empty() && lock.WaitUntil(changed_, due)) {
  }
  // The check is under the same lock as the taking, so that no offer slips in between and is left
  // behind.
  if (stopping_ && waiting_.empty()) return std::nullopt;
  const bool was_full = waiting_.rows() >= options_.max_waiting_rows;
  core::Output taken = waiting_.Take();
  if (const uint64_t rows = taken.changes.size(); rows > 0) {
    ++counts_.commits;
    counts_.rows += rows;
    counts_.most_rows = std::max(counts_.most_rows, rows);
  }
  lock.Unlock();
  if (was_full) changed_.notify_all();
  return taken;
}

void Committer::Run() {
  absl::Duration patience = options_.idle_after;
  while (std::optional<core::Output> output = Take(patience)) {
    if (!IsEmpty(*output)) {
      const auto commit = [this](const core::Changes& changes) { return Commit(changes); };
      if (absl::Status status = CommitThenCarryOut(*std::move(output), commit, carry_out_);
          !status.ok()) {
        return Fail(status);
      }
      patience = options_.idle_after;
      continue;
    }
    if (const absl::Status status = store_->Idle(); !status.ok()) return Fail(status);
    patience = options_.idle_interval;
  }
}

absl::Status Committer::Commit(const core::Changes& changes) {
  on_commit_(true);
  absl::Status status = store_->Commit(changes);
  on_commit_(false);
  return status;
}

void Committer::Fail(const absl::Status& status) {
  {
    const MutexLock lock(mutex_);
    failed_ = true;
  }
  changed_.notify_all();
  on_failure_(status);
}

}  // namespace muster::broker
