// The parts of LogFollower; for its own files.
#ifndef MUSTER_AGENTS_KUBERNETES_LOGS_LOG_FOLLOWER_IMPL_H_
#define MUSTER_AGENTS_KUBERNETES_LOGS_LOG_FOLLOWER_IMPL_H_

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agents/core/worker_lane.h"
#include "agents/kubernetes/logs/log_follower.h"
#include "agents/kubernetes/logs/log_track.h"

namespace muster::kubernetes {

// One thread opens streams, and decides after each what comes next. Another one writes what the
// streams bring. Those that bring the news of pods take the lock of the inbox alone, under which
// nothing is read or written.
class LogFollower::Impl {
 public:
  Impl(std::string directory, Api* api, std::function<void()> wake, LogFollowerOptions options)
      : directory_(std::move(directory)),
        api_(*api),
        wake_(std::move(wake)),
        options_(options),
        thread_([this] { Work(); }) {}

  ~Impl() {
    {
      const std::lock_guard lock(inbox_mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    thread_.join();
    {
      const std::lock_guard lock(mutex_);
      for (const auto& track : AllTracks()) Cut(track.get());
    }
    std::unique_lock lock(inbox_mutex_);
    changed_.wait(lock, [&] { return follows_ + last_reads_ == 0; });
  }

  void Watch(const PodObject& pod, const std::string& run_key);
  bool IsComplete(const std::string& run_key, const std::vector<PodObject>& pods);
  std::vector<agents::LogSource> Logs(const std::string& run_key, uint32_t ranks) const;
  void Forget(const std::string& run_key);
  absl::Status health() const;
  size_t open_streams() const {
    const std::lock_guard lock(inbox_mutex_);
    return follows_ + last_reads_;
  }

 private:
  using TrackPtr = std::shared_ptr<LogTrack>;
  struct Run {
    std::map<std::string, TrackPtr> tracks;  // by file name
    bool has_scanned = false;
    std::optional<bool> is_together;
  };
  struct Answer {
    TrackPtr track;
    LogReadResult result;
  };
  struct News {
    std::string run_key;
    PodObject pod;
  };

  std::string RunDirectory(const std::string& run_key) const { return directory_ + "/" + run_key; }
  std::vector<TrackPtr> AllTracks() const;
  TrackPtr TrackOf(const std::string& run_key, uint32_t rank, LogPart part);
  // Ends all that is read and written of the run.
  void Drop(const std::string& run_key);
  void Scan(const std::string& run_key, Run* run);

  void Work();
  // Take over what has come.
  void TakeNamed();
  void TakeAnswers();
  bool IsStopping() const;
  // There is something to read of the pod, or what is being read of it has ended.
  static bool IsNews(const PodObject& pod);
  void Name(const News& news);
  void Take(Answer answer);
  void WakeUp();
  void Do(LogStep step, const LogReadResult& result, LogTrack* track);
  void EndSource(LogTrack* track, const absl::Status& status);
  void Cut(LogTrack* track);
  std::vector<TrackPtr> Ready(absl::Time now, absl::Time* next);
  bool IsDue(LogTrack* track, absl::Time now, absl::Time* next);
  bool Prepare(const TrackPtr& track, absl::Time now);
  void Open(const TrackPtr& track, std::unique_lock<std::mutex>* lock);
  bool AwaitProbe(const TrackPtr& track, std::unique_lock<std::mutex>* lock);
  bool IsTogether(const std::string& run_key, Run* run);
  void SetTogether(const std::string& run_key, Run* run);
  void PauseForDisk(const absl::Status& status);

  const std::string directory_;
  Api& api_;
  const std::function<void()> wake_;
  const LogFollowerOptions options_;

  mutable std::mutex inbox_mutex_;  // the inner one of both; guards until mutex_
  std::condition_variable changed_;
  bool stopping_ = false;
  bool has_news_ = false;
  std::deque<std::string> named_order_;
  std::map<std::string, News> named_;  // by the pod's uid; the latest of each
  std::deque<Answer> answers_;
  size_t follows_ = 0;
  size_t last_reads_ = 0;

  mutable std::mutex mutex_;  // guards all below
  std::map<std::string, Run> runs_;
  // The tracks of which something may be due, by arrival: neither those that are followed, nor
  // those that are done.
  std::map<uint64_t, TrackPtr> active_;
  std::deque<std::string> forgotten_order_;
  std::set<std::string> forgotten_;
  uint64_t arrivals_ = 0;
  std::optional<bool> can_split_;
  absl::Time next_probe_ = absl::InfinitePast();
  absl::Status probe_;
  absl::Status disk_;
  absl::Time disk_pause_end_ = absl::InfinitePast();
  bool needs_credentials_ = false;
  bool needs_wake_ = false;
  agents::WorkerLane writer_{1};
  std::thread thread_;
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_LOGS_LOG_FOLLOWER_IMPL_H_
