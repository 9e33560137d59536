#include "agents/machines/work_sweeper.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "agents/hosts/local_host.h"
#include "agents/machines/clock_now.h"
#include "agents/machines/old_work.h"
#include "contract/text.h"
#include "daemon/log.h"

namespace muster::machines {
namespace {

// A tenth late at most, an hour where that is less.
constexpr int kSweepsInKeep = 10;
constexpr absl::Duration kMinSweepInterval = absl::Seconds(1);
constexpr absl::Duration kMaxSweepInterval = absl::Hours(1);
// One step takes this time, for tens of thousands of files. On hosts over SSH a start may wait for
// it.
constexpr int kStepMs = 2000;
// The same words are reported this far apart: often enough for whoever looks at a log after a
// change.
constexpr int64_t kTellAgainMs = 3'600'000;
// This many words are remembered; beyond them nothing is told until one is old enough.
constexpr size_t kMaxRemembered = 16;

}  // namespace

absl::Duration SweepInterval(absl::Duration keep) {
  return std::clamp(keep / kSweepsInKeep, kMinSweepInterval, kMaxSweepInterval);
}

bool RareWords::AreDue(const std::string& words, int64_t now_ms) {
  std::erase_if(told_ms_, [&](const auto& told) { return now_ms - told.second >= kTellAgainMs; });
  return told_ms_.size() < kMaxRemembered && told_ms_.emplace(words, now_ms).second;
}

std::vector<std::string> SweepSteps::Words(const std::string& runs_directory) const {
  return {"old-work", runs_directory, std::to_string(absl::ToInt64Seconds(keep_)),
          std::to_string(kStepMs), last_};
}

bool SweepSteps::Take(std::string_view answer) {
  const std::optional<OldWork> found = OldWork::Decode(answer);
  if (!found.has_value()) {
    TellTrouble("muster-supervisor does not tell what it has done");
    return false;
  }
  last_ = found->last;
  if (!found->trouble.empty()) TellTrouble(found->trouble, found->stuck);
  if (found->removed > 0) {
    LogEvent(spdlog::level::info, "old_work_removed",
             {{"host", host_}, {"runs", std::to_string(found->removed)}});
  }
  return found->is_more;
}

void SweepSteps::TellTrouble(std::string_view trouble, int64_t runs) {
  if (!told_.AreDue(std::string(trouble), SteadyMilliseconds())) return;
  LogEvent(spdlog::level::warn, "old_work_not_removed",
           {{"host", host_}, {"runs", std::to_string(runs)}, {"error", std::string(trouble)}});
}

WorkSweeper::WorkSweeper(Options options)
    : options_(std::move(options)), steps_(options_.hostname, options_.keep) {
  if (options_.keep != absl::InfiniteDuration()) thread_ = std::thread([this] { Loop(); });
}

WorkSweeper::~WorkSweeper() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void WorkSweeper::Loop() {
  const auto interval = absl::ToChronoNanoseconds(SweepInterval(options_.keep));
  MutexLock lock(mutex_);
  while (!stop_) {
    lock.Unlock();
    const bool is_more = Step();
    lock.Lock();
    const auto due = std::chrono::steady_clock::now() + interval;
    while (!is_more && !stop_ && lock.WaitUntil(stopped_, due)) {
    }
  }
}

bool WorkSweeper::Step() {
  std::vector<std::string> words = steps_.Words(options_.runs_directory);
  words.insert(words.begin(), options_.supervisor);
  hosts::LocalHost host;
  const absl::StatusOr<hosts::CommandResult> result = host.Run({.argv = std::move(words)});
  if (result.ok()) return steps_.Take(result->stdout_data);
  steps_.TellTrouble(ToStd(result.status().message()));
  return false;
}

}  // namespace muster::machines
