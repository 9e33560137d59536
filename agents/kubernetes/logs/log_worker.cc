// LogFollower's thread.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "agents/core/steady_time.h"
#include "agents/kubernetes/api/retry_after.h"
#include "agents/kubernetes/logs/log_follower_impl.h"
#include "fmt/format.h"
#include "sync/mutex.h"

namespace muster::kubernetes {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kProbeTimeout = absl::Seconds(10);
constexpr absl::Duration kProbePause = absl::Seconds(1);
// A stream that lasted for so long says nothing against the next one.
constexpr absl::Duration kLongStream = absl::Minutes(1);
// The file is there if all of the run's output is read together.
constexpr char kTogetherFile[] = "together";

}  // namespace

void LogFollower::Impl::WakeUp() {
  const MutexLock lock(inbox_mutex_);
  has_news_ = true;
  changed_.notify_all();
}

bool LogFollower::Impl::IsStopping() const {
  const MutexLock lock(inbox_mutex_);
  return stopping_;
}

void LogFollower::Impl::TakeNamed() {
  std::deque<std::string> order;
  std::map<std::string, News> named;
  {
    const MutexLock lock(inbox_mutex_);
    order.swap(named_order_);
    named.swap(named_);
  }
  for (const std::string& uid : order) Name(named.at(uid));
}

void LogFollower::Impl::TakeAnswers() {
  std::deque<Answer> answers;
  {
    const MutexLock lock(inbox_mutex_);
    has_news_ = false;
    answers.swap(answers_);
  }
  for (Answer& answer : answers) Take(std::move(answer));
}

void LogFollower::Impl::Work() {
  MutexLock lock(mutex_);
  while (!IsStopping()) {
    TakeAnswers();
    TakeNamed();
    if (std::exchange(needs_credentials_, false)) {
      lock.Unlock();
      api_.RenewCredentials();
      lock.Lock();
    }
    absl::Time next = absl::InfiniteFuture();
    for (const TrackPtr& track : Ready(agents::SteadyNow(), &next)) {
      if (IsStopping()) return;
      if (NeedsProbe(*track)) {
        bool is_told = false;
        if (agents::SteadyNow() >= next_probe_) {
          const std::string name_space = track->sources.front().target.name_space;
          lock.Unlock();
          const absl::StatusOr<ApiAnswer> answer = Probe(name_space);
          lock.Lock();
          is_told = TakeProbe(answer);
        }
        if (!is_told) {
          next = std::min(next, next_probe_);
          break;
        }
      }
      if (Prepare(track, agents::SteadyNow())) {
        Request request = Open(track);
        lock.Unlock();
        const absl::StatusOr<HttpLoop::CallId> call = Send(std::move(request));
        lock.Lock();
        if (call.ok()) SetCall(track, *call);
      } else {
        WakeUp();  // its place is free for another
      }
    }
    const bool is_news_for_others = std::exchange(needs_wake_, false) && wake_ != nullptr;
    lock.Unlock();
    if (is_news_for_others) wake_();
    // A day at most, because the clock's own times end.
    const absl::Duration wait =
        std::clamp(next - agents::SteadyNow(), absl::ZeroDuration(), absl::Hours(24));
    {
      MutexLock inbox(inbox_mutex_);
      const auto due = std::chrono::steady_clock::now() +
                       absl::ToChronoMilliseconds(wait + absl::Milliseconds(1));
      while (!stopping_ && !has_news_ && answers_.empty() && inbox.WaitUntil(changed_, due)) {
      }
    }
    lock.Lock();
  }
}

std::vector<LogFollower::Impl::TrackPtr> LogFollower::Impl::Ready(absl::Time now,
                                                                  absl::Time* next) {
  size_t follows_left = 0;
  size_t last_left = 0;
  {
    const MutexLock lock(inbox_mutex_);
    follows_left = options_.max_streams - std::min(options_.max_streams, follows_);
    last_left = options_.max_last_reads - std::min(options_.max_last_reads, last_reads_);
  }
  std::vector<TrackPtr> due;
  for (auto at = active_.begin(); at != active_.end();) {
    const TrackPtr track = at->second;
    // Its answer, its end or its name makes it active again.
    const bool is_followed = track->is_reading && (!track->follows || track->is_cut ||
                                                   !track->sources.front().ended.has_value());
    const bool is_done = !track->is_reading && track->sources.empty() && !track->is_left;
    if (is_followed || is_done) {
      at = active_.erase(at);
      continue;
    }
    ++at;
    if (!IsDue(track.get(), now, next)) continue;
    if (!track->sources.empty()) {
      size_t& left = track->sources.front().ended.has_value() ? last_left : follows_left;
      if (left == 0) continue;
      --left;
    }
    due.push_back(track);
  }
  return due;
}

// Returns whether something of it is to be asked for now; cuts a stream that has outlived its
// container.
bool LogFollower::Impl::IsDue(LogTrack* track, absl::Time now, absl::Time* next) {
  if (track->is_reading) {
    const std::optional<absl::Time> ended = track->sources.front().ended;
    if (!track->follows || track->is_cut || !ended.has_value()) return false;
    const absl::Time end = *ended + options_.end_grace;
    if (end <= now) Cut(track);
    if (end > now) *next = std::min(*next, end);
    return false;
  }
  if (track->sources.empty() && !track->is_left) return false;
  const absl::Time due = std::max(track->due, disk_pause_end_);
  if (due > now) *next = std::min(*next, due);
  return due <= now;
}

bool LogFollower::Impl::NeedsProbe(const LogTrack& track) const {
  return !can_split_.has_value() && !track.sources.empty();
}

absl::StatusOr<ApiAnswer> LogFollower::Impl::Probe(const std::string& name_space) {
  // No server knows this stream: one that knows streams says so, one that may not use them refuses
  // the word itself, and an older one looks for the pod.
  const std::string path =
      fmt::format("/api/v1/namespaces/{}/pods/muster-probe/log?stream=Muster", Escape(name_space));
  return api_.Call({.path = path, .timeout = kProbeTimeout});
}

bool LogFollower::Impl::TakeProbe(const absl::StatusOr<ApiAnswer>& answer) {
  next_probe_ = agents::SteadyNow() + kProbePause;
  if (!answer.ok() || answer->status == 401 || answer->status == 429 || answer->status >= 500) {
    probe_ = answer.ok() ? RefusalOf(*answer, "read logs of pods") : answer.status();
    return false;
  }
  probe_ = absl::OkStatus();
  const Json& causes = At(answer->body, "details/causes");
  can_split_ = std::any_of(causes.begin(), causes.end(), [](const Json& cause) {
    return TextAt(cause, "reason") == "FieldValueNotSupported";
  });
  return true;
}

bool LogFollower::Impl::IsTogether(const std::string& run_key, Run* run) {
  if (run->is_together.has_value()) return *run->is_together;
  const std::string directory = RunDirectory(run_key);
  std::error_code error;
  run->is_together = fs::exists(directory + "/" + kTogetherFile, error);
  const bool is_new = fs::create_directories(directory, error);
  if (is_new && !can_split_.value_or(false)) SetTogether(run_key, run);
  return *run->is_together;
}

void LogFollower::Impl::SetTogether(const std::string& run_key, Run* run) {
  run->is_together = true;
  std::ofstream(RunDirectory(run_key) + "/" + kTogetherFile).put('\n');
}

// Returns whether the first of its containers can be asked for.
bool LogFollower::Impl::Prepare(const TrackPtr& track, absl::Time now) {
  const auto run = runs_.find(track->run_key);
  if (run == runs_.end()) return false;
  switch (track->Arrange(track->is_left ? absl::InfiniteFuture() : now)) {
    case LogTrack::Next::kNothing:
      track->is_left = false;  // it was named after all, and has been read
      needs_wake_ = true;
      return false;
    case LogTrack::Next::kGiveUp:
      track->is_left = false;
      if (const absl::Status given = track->GiveUp("its pod is gone"); !given.ok())
        PauseForDisk(given);
      needs_wake_ = true;
      return false;
    case LogTrack::Next::kRead:
      break;
  }
  if (track->part == LogPart::kStderr && IsTogether(track->run_key, &run->second)) {
    if (const absl::Status dropped = track->Drop(); !dropped.ok()) PauseForDisk(dropped);
    needs_wake_ = true;
    return false;
  }
  IsTogether(track->run_key, &run->second);
  const std::string key = track->sources.front().target.key();
  const MutexLock lock(track->file->mutex);
  if (track->file->spool.source() == key) return true;
  const absl::Status begun = track->file->spool.Begin(key);
  if (!begun.ok()) PauseForDisk(begun);
  return begun.ok();
}

LogFollower::Impl::Request LogFollower::Impl::Open(const TrackPtr& track) {
  const LogSourceState& source = track->sources.front();
  const bool is_together = runs_[track->run_key].is_together.value_or(true);
  const LogPart part = is_together ? LogPart::kAll : track->part;
  LogPosition known;
  {
    const MutexLock file_lock(track->file->mutex);
    known = track->file->spool.position();
  }
  // If the clock was set back, what was late then hides what is new now.
  if (source.refusals > 0) known.latest = known.time;
  track->follows = !source.ended.has_value();
  track->is_reading = true;
  track->is_cut = false;
  track->opened = agents::SteadyNow();
  {
    const MutexLock inbox(inbox_mutex_);
    ++(track->follows ? follows_ : last_reads_);
  }
  const std::string path = LogPath(source.target, part, track->follows, known);
  const auto ended = [this, track](LogReadResult result) {
    const MutexLock inbox(inbox_mutex_);
    --(track->follows ? follows_ : last_reads_);
    answers_.push_back({track, std::move(result)});
    changed_.notify_all();
  };
  // A container may be silent for days, and a connection whose other end is gone is found out by
  // the loop; a log that is whole already has no reason to be silent.
  const absl::Duration silence =
      track->follows ? absl::InfiniteDuration() : options_.last_read_silence;
  return {.path = path,
          .silence = silence,
          .read = std::make_unique<LogRead>(track->file, known, part, ended),
          .ended = ended};
}

absl::StatusOr<HttpLoop::CallId> LogFollower::Impl::Send(Request request) {
  absl::StatusOr<HttpLoop::CallId> call =
      api_.Stream(request.path, request.silence, std::move(request.read), &writer_);
  if (!call.ok()) {
    LogReadResult failed;
    failed.connection = call.status();
    request.ended(std::move(failed));
  }
  return call;
}

void LogFollower::Impl::SetCall(const TrackPtr& track, HttpLoop::CallId call) {
  track->call = call;
  const MutexLock file_lock(track->file->mutex);
  if (track->file->is_dropped) api_.Cancel(call);
}

void LogFollower::Impl::Cut(LogTrack* track) {
  if (!track->call.has_value() || std::exchange(track->is_cut, true)) return;
  api_.Cancel(*track->call);
}

void LogFollower::Impl::PauseForDisk(const absl::Status& status) {
  disk_ = status;
  disk_pause_end_ = agents::SteadyNow() + options_.disk_pause;
}

void LogFollower::Impl::Take(Answer answer) {
  LogTrack* track = answer.track.get();
  track->is_reading = false;
  track->call.reset();
  if (!runs_.contains(track->run_key) || track->sources.empty()) return;
  active_[track->arrival] = answer.track;
  const LogReadResult& result = answer.result;
  if (result.refusal.status == 401) needs_credentials_ = true;
  if (!result.disk.ok()) {
    PauseForDisk(result.disk);
  } else if (result.has_news) {
    disk_ = absl::OkStatus();
  }
  const bool is_good = result.has_news && result.words.empty();
  if (is_good || agents::SteadyNow() - track->opened > kLongStream)
    track->pause = options_.first_pause;
  LogSourceState& source = track->sources.front();
  // A stream that was cut because the agent wanted it is no trouble.
  track->trouble = track->is_cut ? absl::OkStatus() : result.trouble(source.target);
  Do(StepAfter(result, !track->follows, options_, &source), result, track);
}

void LogFollower::Impl::Do(LogStep step, const LogReadResult& result, LogTrack* track) {
  track->due = agents::SteadyNow();
  switch (step) {
    case LogStep::kFinish: {
      const MutexLock lock(track->file->mutex);
      EndSource(track, track->file->spool.Finish());
      return;
    }
    case LogStep::kGiveUp:
      EndSource(track, track->GiveUp(std::string(track->trouble.message())));
      return;
    case LogStep::kReadTogether:
      SetTogether(track->run_key, &runs_[track->run_key]);
      return;
    case LogStep::kAgain:
      return;
    case LogStep::kLater:
      track->due += PauseOf(track->pause, result.retry_after);
      track->pause = std::min(options_.longest_pause, track->pause * 2);
  }
}

// `status` says whether that could be written.
void LogFollower::Impl::EndSource(LogTrack* track, const absl::Status& status) {
  track->due = agents::SteadyNow();
  if (!status.ok()) {
    PauseForDisk(status);
    return;
  }
  track->trouble = absl::OkStatus();
  track->pause = options_.first_pause;
  if (!track->sources.empty()) track->sources.pop_front();
  if (track->sources.empty()) needs_wake_ = true;
}

}  // namespace muster::kubernetes
