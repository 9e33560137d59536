#include "agents/kubernetes/logs/log_follower.h"

#include <filesystem>

#include "absl/strings/numbers.h"
#include "agents/kubernetes/logs/log_follower_impl.h"
#include "fmt/format.h"
#include "sync/mutex.h"

namespace muster::kubernetes {
namespace {

namespace fs = std::filesystem;

// Runs whose late news is not taken for that of a new run.
constexpr size_t kMaxForgotten = 10'000;
constexpr char kPositionSuffix[] = ".position";

std::string FileName(uint32_t rank, LogPart part) {
  return fmt::format("rank-{}.{}", rank, part == LogPart::kStderr ? "err" : "out");
}

}  // namespace

std::vector<LogFollower::Impl::TrackPtr> LogFollower::Impl::AllTracks() const {
  std::vector<TrackPtr> tracks;
  for (const auto& [key, run] : runs_) {
    for (const auto& [name, track] : run.tracks) tracks.push_back(track);
  }
  return tracks;
}

LogFollower::Impl::TrackPtr LogFollower::Impl::TrackOf(const std::string& run_key, uint32_t rank,
                                                       LogPart part) {
  const std::string name = FileName(rank, part);
  TrackPtr& track = runs_[run_key].tracks[name];
  if (track == nullptr) {
    track = std::make_shared<LogTrack>(run_key, RunDirectory(run_key) + "/" + name, part);
    track->arrival = ++arrivals_;
    track->pause = options_.first_pause;
  }
  return track;
}

bool LogFollower::Impl::IsNews(const PodObject& pod) {
  return !ContainersToRead(pod).empty() || pod.HasEnded();
}

void LogFollower::Impl::Watch(const PodObject& pod, const std::string& run_key) {
  if (!IsNews(pod)) return;
  const MutexLock lock(inbox_mutex_);
  const auto [known, is_new] = named_.try_emplace(pod.name.uid);
  if (is_new) named_order_.push_back(pod.name.uid);
  known->second = {run_key, pod};
  has_news_ = true;
  changed_.notify_all();
}

void LogFollower::Impl::Name(const News& news) {
  const auto& [run_key, pod] = news;
  if (forgotten_.contains(run_key)) return;
  const bool is_together = runs_[run_key].is_together.value_or(false);
  for (const LogPart part : {LogPart::kStdout, LogPart::kStderr}) {
    if (part == LogPart::kStderr && is_together) continue;
    const TrackPtr track = TrackOf(run_key, pod.index, part);
    if (track->Name(pod)) active_[track->arrival] = track;
  }
}

void LogFollower::Impl::Scan(const std::string& run_key, Run* run) {
  if (std::exchange(run->has_scanned, true)) return;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(RunDirectory(run_key), error)) {
    const std::string name = entry.path().filename().string();
    const size_t dot = name.find('.');
    uint32_t rank = 0;
    if (!name.ends_with(kPositionSuffix) || !name.starts_with("rank-") ||
        !absl::SimpleAtoi(name.substr(5, dot - 5), &rank))
      continue;
    TrackOf(run_key, rank,
            name == FileName(rank, LogPart::kStderr) + kPositionSuffix ? LogPart::kStderr
                                                                       : LogPart::kStdout);
  }
}

bool LogFollower::Impl::IsComplete(const std::string& run_key, const std::vector<PodObject>& pods) {
  const MutexLock lock(mutex_);
  if (forgotten_.contains(run_key)) return true;
  TakeNamed();
  for (const PodObject& pod : pods) {
    if (IsNews(pod)) Name({run_key, pod});
  }
  Run& run = runs_[run_key];
  Scan(run_key, &run);
  bool is_complete = true;
  for (const auto& [name, track] : run.tracks) {
    const LogTrack::Next next =
        track->is_reading ? LogTrack::Next::kRead : track->Arrange(absl::InfiniteFuture());
    if (next == LogTrack::Next::kGiveUp) track->is_left = true;
    if (next == LogTrack::Next::kNothing) continue;
    active_[track->arrival] = track;
    is_complete = false;
  }
  if (!is_complete) WakeUp();
  return is_complete;
}

std::vector<agents::LogSource> LogFollower::Impl::Logs(const std::string& run_key,
                                                       uint32_t ranks) const {
  std::vector<agents::LogSource> sources;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const std::string directory = RunDirectory(run_key) + "/";
    sources.push_back({rank, v1::LOG_STREAM_STDOUT, directory + FileName(rank, LogPart::kStdout)});
    sources.push_back({rank, v1::LOG_STREAM_STDERR, directory + FileName(rank, LogPart::kStderr)});
  }
  return sources;
}

void LogFollower::Impl::Forget(const std::string& run_key) {
  Drop(run_key);
  // This runs without the lock, because it may take long, and others must not wait for it. Nobody
  // writes there any more.
  std::error_code error;
  fs::remove_all(RunDirectory(run_key), error);
}

void LogFollower::Impl::Drop(const std::string& run_key) {
  const MutexLock lock(mutex_);
  if (const auto run = runs_.find(run_key); run != runs_.end()) {
    for (const auto& [name, track] : run->second.tracks) {
      active_.erase(track->arrival);
      Cut(track.get());
      const MutexLock file_lock(track->file->mutex);
      track->file->is_dropped = true;
    }
    runs_.erase(run);
  }
  if (forgotten_.insert(run_key).second) forgotten_order_.push_back(run_key);
  if (forgotten_order_.size() > kMaxForgotten) {
    forgotten_.erase(forgotten_order_.front());
    forgotten_order_.pop_front();
  }
}

absl::Status LogFollower::Impl::health() const {
  const MutexLock lock(mutex_);
  if (!disk_.ok()) return disk_;
  if (!probe_.ok()) return probe_;
  size_t troubled = 0;
  absl::Status first;
  for (const auto& track : AllTracks()) {
    if (track->trouble.ok()) continue;
    if (troubled++ == 0) first = track->trouble;
  }
  if (troubled == 0) return absl::OkStatus();
  return {first.code(), fmt::format("{} log(s) cannot be read at present; {}", troubled,
                                    std::string(first.message()))};
}

LogFollower::LogFollower(std::string spool_directory, Api* api, std::function<void()> wake,
                         LogFollowerOptions options)
    : impl_(std::make_unique<Impl>(std::move(spool_directory), api, std::move(wake), options)) {}
LogFollower::~LogFollower() = default;

void LogFollower::Watch(const PodObject& pod, const std::string& run_key) {
  impl_->Watch(pod, run_key);
}
bool LogFollower::IsComplete(const std::string& run_key, const std::vector<PodObject>& pods) {
  return impl_->IsComplete(run_key, pods);
}
std::vector<agents::LogSource> LogFollower::Logs(const std::string& run_key, uint32_t ranks) const {
  return impl_->Logs(run_key, ranks);
}
void LogFollower::Forget(const std::string& run_key) { impl_->Forget(run_key); }
absl::Status LogFollower::health() const { return impl_->health(); }
size_t LogFollower::open_streams() const { return impl_->open_streams(); }

}  // namespace muster::kubernetes
