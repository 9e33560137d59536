// Declares the parts of LogFollower, for its own files.
#ifndef MUSTER_AGENTS_KUBERNETES_LOGS_LOG_FOLLOWER_IMPL_H_
#define MUSTER_AGENTS_KUBERNETES_LOGS_LOG_FOLLOWER_IMPL_H_

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agents/core/worker_lane.h"
#include "agents/kubernetes/logs/log_follower.h"
#include "agents/kubernetes/logs/log_track.h"
#include "sync/mutex.h"

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
      const MutexLock lock(inbox_mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    thread_.join();
    {
      const MutexLock lock(mutex_);
      for (const auto& track : AllTracks()) Cut(track.get());
    }
    MutexLock lock(inbox_mutex_);
    while (follows_ + last_reads_ > 0) lock.Wait(changed_);
  }

  void Watch(const PodObject& pod, const std::string& run_key);
  bool IsComplete(const std::string& run_key, const std::vector<PodObject>& pods);
  std::vector<agents::LogSource> Logs(const std::string& run_key, uint32_t ranks) const;
  void Forget(const std::string& run_key);
  absl::Status health() const;
  size_t open_streams() const {
    const MutexLock lock(inbox_mutex_);
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
  std::vector<TrackPtr> AllTracks() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  TrackPtr TrackOf(const std::string& run_key, uint32_t rank, LogPart part)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends all that is read and written of the run.
  void Drop(const std::string& run_key);
  void Scan(const std::string& run_key, Run* run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void Work();
  // Take over what has come.
  void TakeNamed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeAnswers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsStopping() const;
  // There is something to read of the pod, or what is being read of it has ended.
  static bool IsNews(const PodObject& pod);
  void Name(const News& news) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Take(Answer answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeUp() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Do(LogStep step, const LogReadResult& result, LogTrack* track)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndSource(LogTrack* track, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Cut(LogTrack* track) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<TrackPtr> Ready(absl::Time now, absl::Time* next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsDue(LogTrack* track, absl::Time now, absl::Time* next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Prepare(const TrackPtr& track, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Begins to read of the first source: a request for Send.
  struct Request {
    std::string path;
    absl::Duration silence;
    std::unique_ptr<LogRead> read;
    std::function<void(LogReadResult)> ended;
  };
  Request Open(const TrackPtr& track) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<HttpLoop::CallId> Send(Request request);
  void SetCall(const TrackPtr& track, HttpLoop::CallId call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether the server must say first if it splits the streams of a container.
  bool NeedsProbe(const LogTrack& track) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<ApiAnswer> Probe(const std::string& name_space);
  // Returns whether the answer tells.
  bool TakeProbe(const absl::StatusOr<ApiAnswer>& answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsTogether(const std::string& run_key, Run* run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetTogether(const std::string& run_key, Run* run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PauseForDisk(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string directory_;
  Api& api_;
  const std::function<void()> wake_;
  const LogFollowerOptions options_;

  mutable Mutex inbox_mutex_;  // the inner one of both
  std::condition_variable changed_;
  bool stopping_ ABSL_GUARDED_BY(inbox_mutex_) = false;
  bool has_news_ ABSL_GUARDED_BY(inbox_mutex_) = false;
  std::deque<std::string> named_order_ ABSL_GUARDED_BY(inbox_mutex_);
  std::map<std::string, News> named_
      ABSL_GUARDED_BY(inbox_mutex_);  // by the pod's uid; the latest of each
  std::deque<Answer> answers_ ABSL_GUARDED_BY(inbox_mutex_);
  size_t follows_ ABSL_GUARDED_BY(inbox_mutex_) = 0;
  size_t last_reads_ ABSL_GUARDED_BY(inbox_mutex_) = 0;

  mutable Mutex mutex_;
  std::map<std::string, Run> runs_ ABSL_GUARDED_BY(mutex_);
  // The tracks of which something may be due, by arrival: neither those that are followed, nor
  // those that are done.
  std::map<uint64_t, TrackPtr> active_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> forgotten_order_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> forgotten_ ABSL_GUARDED_BY(mutex_);
  uint64_t arrivals_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<bool> can_split_ ABSL_GUARDED_BY(mutex_);
  absl::Time next_probe_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Status probe_ ABSL_GUARDED_BY(mutex_);
  absl::Status disk_ ABSL_GUARDED_BY(mutex_);
  absl::Time disk_pause_end_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  bool needs_credentials_ ABSL_GUARDED_BY(mutex_) = false;
  bool needs_wake_ ABSL_GUARDED_BY(mutex_) = false;
  agents::WorkerLane writer_{1};
  std::thread thread_;
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_LOGS_LOG_FOLLOWER_IMPL_H_
