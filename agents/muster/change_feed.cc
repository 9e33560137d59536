#include "agents/muster/change_feed.h"

#include <utility>

#include "absl/time/clock.h"
#include "agents/hosts/steady_now.h"
#include "agents/muster/translate.h"
#include "contract/text.h"
#include "daemon/log.h"

namespace muster::remote {
namespace {

// The broker says each 15 s that nothing has changed. A stream that is silent for longer may be
// dead, and its last news may be old.
constexpr absl::Duration kSilence = absl::Seconds(20);
// The feed pauses this long after a stream that ended badly; before that, the client has tried for
// long.
constexpr absl::Duration kPause = absl::Seconds(5);

}  // namespace

ChangeFeed::ChangeFeed(const RemoteConfig& config, Connection* connection, Events events)
    : filter_(FilterOfCluster(config.cluster)),
      length_(config.feed_length),
      connection_(*connection),
      events_(std::move(events)) {}

ChangeFeed::~ChangeFeed() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ChangeFeed::Start() {
  thread_ = std::thread([this] { Loop(); });
}

bool ChangeFeed::IsLive() const {
  const MutexLock lock(mutex_);
  return heard_ && hosts::SteadyNow() - *heard_ < kSilence;
}

void ChangeFeed::Heard() {
  told_loss_.clear();
  // A gap in time may be a gap in the changes, too, if the database of a broker was restored.
  if (std::exchange(is_first_, false) || !IsLive()) events_.begun();
  const MutexLock lock(mutex_);
  heard_ = hosts::SteadyNow();
}

void ChangeFeed::TellLoss(const absl::Status& why) {
  std::string error(ToStd(why.message()));
  if (error == told_loss_) return;
  LogEvent(spdlog::level::warn, "feed_lost", {{"error", error}});
  told_loss_ = std::move(error);
}

bool ChangeFeed::WaitOrStop(absl::Duration wait) {
  const auto due = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(wait);
  MutexLock lock(mutex_);
  while (!stopping_ && lock.WaitUntil(stop_, due)) {
  }
  return stopping_;
}

void ChangeFeed::Loop() {
  while (!WaitOrStop(absl::ZeroDuration())) Follow();
}

void ChangeFeed::Follow() {
  is_first_ = true;
  v1::WatchJobsRequest request;
  request.set_filter(filter_);
  if (after_) {
    request.set_after(*after_);
  } else {
    request.mutable_now();
  }
  const auto reader =
      connection_.For("WatchJobs").WatchJobs(request, absl::Now() + length_, [this] { Heard(); });
  while (true) {
    const absl::StatusOr<std::optional<v1::JobChange>> change = reader->Next();
    if (!change.ok()) {
      if (absl::IsDeadlineExceeded(change.status())) return;
      after_.reset();
      TellLoss(change.status());
      WaitOrStop(kPause);
      return;
    }
    if (!change->has_value()) return;
    Heard();
    after_ = (*change)->sequence();
    events_.changed((*change)->job().id());
  }
}

}  // namespace muster::remote
