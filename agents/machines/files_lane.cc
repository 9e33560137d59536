#include "agents/machines/files_lane.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "agents/core/job_storage.h"
#include "agents/files/job_files.h"
#include "agents/machines/results_name.h"
#include "contract/failures.h"
#include "contract/sentences.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

using Clock = std::chrono::steady_clock;

// The threads sleep at most this long while nobody waits; somebody who comes wakes them.
constexpr std::chrono::hours kIdle(1);

FilesNews NewsOf(const FilesLane::Task& task, const absl::Status& status) {
  FilesNews news = {.ticket = task.ticket, .run_key = task.run_key};
  if (status.ok()) return news;
  agents::LaunchOutcome outcome = uploads::NotLaunched(status);
  const bool comes_again =
      absl::IsResourceExhausted(status) || outcome.kind == agents::LaunchOutcome::Kind::kDeferred;
  news.kind = comes_again ? FilesNews::Kind::kWaits : FilesNews::Kind::kFailed;
  news.reason = contract::MakeReason(
      v1::STATE_REASON_CODE_BRINGING_FILES,
      {.detail = fmt::format("its files are not there yet: {}", ToStd(status.message()))});
  news.failure = std::move(outcome.failure);
  news.failure.set_phase(v1::FAILURE_PHASE_FILES);
  if (IsResultsNameTaken(status)) {
    news.failure.set_code(v1::FAILURE_CODE_RESULTS_DIRECTORY);
    news.failure.set_detail(agents::WhatIsWrong(status));
    contract::PutSentence(contract::FailureCause::kResultsNameTaken, &news.failure);
  }
  return news;
}

}  // namespace

absl::Status FilesLane::Turn::Conclude(const std::function<absl::Status()>& step) const {
  const MutexLock lock(*mutex_);
  return IsOver() ? absl::CancelledError("nobody wants the files any more") : step();
}

FilesLane::FilesLane(Work work, Listener listener)
    : work_(std::move(work)), listener_(std::move(listener)) {
  for (size_t i = 0; i < kFilesThreads; ++i)
    threads_.emplace_back([this] { Loop(uploads::kFetchPatience); });
  threads_.emplace_back([this] { Loop(kNoPatience); });
}

FilesLane::~FilesLane() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    for (auto& [ticket, entry] : under_way_) entry->dropped = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

uint64_t FilesLane::Add(const std::string& run_key, const v1::JobSpec& job, bool makes_results) {
  auto entry = std::make_shared<Entry>();
  entry->task.run_key = run_key;
  *entry->task.brought.mutable_uploads() = job.uploads();
  entry->task.makes_results = makes_results;
  uint64_t ticket = 0;
  {
    const MutexLock lock(mutex_);
    ticket = entry->task.ticket = next_ticket_++;
    waiting_.push_back(std::move(entry));
  }
  changed_.notify_all();
  return ticket;
}

void FilesLane::Drop(uint64_t ticket) {
  const MutexLock lock(mutex_);
  std::erase_if(waiting_, [&](const auto& entry) { return entry->task.ticket == ticket; });
  const auto found = under_way_.find(ticket);
  if (found != under_way_.end()) found->second->dropped = true;
}

std::shared_ptr<FilesLane::Entry> FilesLane::TakeLocked(absl::Duration patience) {
  const Clock::time_point now = Clock::now();
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& entry) {
    return entry->not_before <= now && (patience != kNoPatience || !entry->was_looked_for);
  });
  if (found == waiting_.end()) return nullptr;
  std::shared_ptr<Entry> entry = std::move(*found);
  waiting_.erase(found);
  entry->was_looked_for = true;
  return entry;
}

Clock::time_point FilesLane::NextTimeLocked(absl::Duration patience) const {
  Clock::time_point next = Clock::now() + kIdle;
  if (patience == kNoPatience) return next;  // first turns are at once
  for (const auto& entry : waiting_) next = std::min(next, entry->not_before);
  return next;
}

void FilesLane::PutBackLocked(std::shared_ptr<Entry> entry) {
  const uint64_t ticket = entry->task.ticket;
  const auto place = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const auto& other) { return other->task.ticket > ticket; });
  waiting_.insert(place, std::move(entry));
}

void FilesLane::Loop(absl::Duration patience) {
  MutexLock lock(mutex_);
  while (!stopping_) {
    const std::shared_ptr<Entry> entry = TakeLocked(patience);
    if (entry == nullptr) {
      lock.WaitUntil(changed_, NextTimeLocked(patience));
      continue;
    }
    under_way_.emplace(entry->task.ticket, entry);
    lock.Unlock();
    const absl::Status status = work_(&entry->task, Turn(&mutex_, &entry->dropped, patience));
    lock.Lock();
    under_way_.erase(entry->task.ticket);
    if (entry->dropped) continue;
    if (patience == kNoPatience && absl::IsUnavailable(status)) {
      PutBackLocked(entry);
      changed_.notify_all();
      continue;
    }
    FilesNews news = NewsOf(entry->task, status);
    if (news.kind == FilesNews::Kind::kWaits) {
      const absl::Duration pause = absl::IsResourceExhausted(status) ? kRoomRetry : kFetchRetry;
      entry->not_before = Clock::now() + absl::ToChronoNanoseconds(pause);
      waiting_.push_back(entry);
      changed_.notify_all();
    }
    lock.Unlock();
    listener_(std::move(news));
    lock.Lock();
  }
}

}  // namespace muster::machines
