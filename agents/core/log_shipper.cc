#include "agents/core/log_shipper.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>

#include "agents/core/broker_session.h"
#include "agents/core/file_watch.h"
#include "agents/core/log_tail.h"
#include "agents/core/remote_logs.h"
#include "agents/core/steady_time.h"
#include "agents/core/wakeup.h"
#include "contract/text.h"
#include "daemon/log.h"
#include "rpc/backoff.h"
#include "sync/mutex.h"

namespace muster::agents {
namespace {

// Chunks that are sent before the thread looks at its inbox again.
constexpr int kMaxChunksInTurn = 64;
// Small chunks are bounded by their number: the broker cuts an agent off that leaves 4096 answers
// unread.
constexpr size_t kMaxChunksInFlight = 2048;

using TailKey = std::tuple<std::string, uint32_t, v1::LogStream>;

struct Tail {
  Tail(const std::string& run_key, const LogSource& source, RemoteLogs* remote)
      : log(run_key, source, remote) {}

  LogTail log;
  bool is_queued = false;  // has a place in the round
  int watch = -1;
  absl::Duration poll = absl::ZeroDuration();  // the last wait without news
  absl::Time next_poll = absl::InfiniteFuture();
  std::string error;  // the last one that was logged
};

struct ShippedRun {
  bool ended = false;
  std::vector<TailKey> tails;
};

// ---- what the inbox carries

struct Connected {
  std::string cluster;
  std::string journal_id;
};
struct Disconnected {};
struct ToShip {
  RunHandle run;
  bool ended = false;
};
struct ToDrop {
  std::string run_key;
};
struct Answered {
  uint64_t link = 0;
  agent::v1::PushResponse answer;
};
struct LinkEnded {
  uint64_t link = 0;
  absl::Status status;
};
using Letter = std::variant<Connected, Disconnected, ToShip, ToDrop, Answered, LinkEnded>;

}  // namespace

class LogShipper::Impl {
 public:
  Impl(LogShipperOptions options, Environment environment)
      : options_(options),
        environment_(std::move(environment)),
        backoff_(options_.min_backoff, options_.max_backoff) {
    if (environment_.host != nullptr)
      remote_.emplace(environment_.host, [this] { return Wants(); });
    thread_ = std::thread([this] { Loop(); });
  }

  ~Impl() {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    wakeup_.Wake();
    thread_.join();
  }

  // The inbox is bounded by what writes to it: one letter for each step of a run, one for each
  // chunk in flight.
  void Post(Letter letter) {
    {
      const MutexLock lock(mutex_);
      inbox_.push_back(std::move(letter));
    }
    wakeup_.Wake();
  }

 private:
  void Loop() {
    while (true) {
      std::deque<Letter> letters;
      {
        const MutexLock lock(mutex_);
        if (stopping_) break;
        letters.swap(inbox_);
        has_room_ = std::exchange(room_came_, false) || has_room_;
      }
      for (Letter& letter : letters) {
        std::visit([this](auto& what) { On(what); }, letter);
      }
      const absl::Time now = time_.Now();
      WakePolls(now);
      DialIfDue(now);
      const bool more = SendRound();
      Wait(more ? now : NextTime());
    }
    link_.reset();
  }

  void Wait(absl::Time until) {
    const int64_t wait_ms = std::clamp<int64_t>(
        absl::ToInt64Milliseconds(until - time_.Now() + absl::Milliseconds(1)), 0, 60'000);
    pollfd fds[] = {{wakeup_.fd(), POLLIN, 0}, {watch_.fd(), POLLIN, 0}};
    if (::poll(fds, 2, until <= time_.Now() ? 0 : static_cast<int>(wait_ms)) <= 0) return;
    if (fds[0].revents != 0) wakeup_.Clear();
    if (fds[1].revents != 0) {
      watch_.Read([this](int watch) {
        if (auto found = watched_.find(watch); found != watched_.end()) Queue(found->second);
      });
    }
  }

  // ---- letters

  void On(const Connected& connected) {
    session_ = connected;
    next_dial_ = absl::InfinitePast();
    backoff_.Reset();
  }

  void On(const Disconnected&) {
    session_.reset();
    CloseLink();
  }

  void On(const ToShip& to_ship) {
    ShippedRun& run = runs_[to_ship.run.run_key];
    for (const LogSource& source : environment_.sources(to_ship.run)) {
      const TailKey key{to_ship.run.run_key, source.rank, source.stream};
      if (!tails_.try_emplace(key, to_ship.run.run_key, source, Remote()).second) continue;
      run.tails.push_back(key);
      Queue(key);
    }
    if (!to_ship.ended) return;
    run.ended = true;
    for (const TailKey& key : run.tails) {
      tails_.at(key).log.SetEnded();
      Queue(key);
    }
    FinishIfComplete(to_ship.run.run_key);
  }

  void On(const ToDrop& to_drop) {
    auto run = runs_.find(to_drop.run_key);
    if (run == runs_.end()) return;
    for (const TailKey& key : run->second.tails) RemoveTail(key);
    runs_.erase(run);
  }

  void On(const Answered& answered) {
    if (answered.link != link_number_ || link_ == nullptr) return;
    backoff_.Reset();
    const agent::v1::PushResponse& answer = answered.answer;
    const TailKey key{answer.run_key(), answer.rank(), answer.stream()};
    auto found = tails_.find(key);
    if (found == tails_.end()) return;
    LogTail& log = found->second.log;
    Uncount(log);
    log.OnAnswer(answer);
    Count(log);
    if (log.complete()) {
      FinishIfComplete(answer.run_key());
    } else {
      Queue(key);
    }
  }

  void On(const LinkEnded& ended) {
    if (ended.link != link_number_ || link_ == nullptr) return;
    CloseLink();
    const absl::Duration wait = backoff_.Next();
    next_dial_ = time_.Now() + wait;
    LogEvent(spdlog::level::warn, "log_link_lost",
             {{"error", ended.status.ToString()}, {"retry_in", absl::FormatDuration(wait)}});
  }

  // ---- the link

  void DialIfDue(absl::Time now) {
    if (!WantsLink() || now < next_dial_) return;
    const uint64_t number = ++link_number_;
    link_ = environment_.dial({.on_answer =
                                   [this, number](agent::v1::PushResponse answer) {
                                     Post(Answered{number, std::move(answer)});
                                   },
                               .on_room = [this] { OnRoom(); },
                               .on_end =
                                   [this, number](absl::Status status) {
                                     Post(LinkEnded{number, status});
                                   }});
    has_room_ = true;
    agent::v1::PushRequest hello;
    hello.mutable_hello()->set_protocol_version(kProtocolVersion);
    hello.mutable_hello()->set_cluster(session_->cluster);
    hello.mutable_hello()->set_journal_id(session_->journal_id);
    link_->Send(hello);
    for (auto& [key, tail] : tails_) {
      tail.log.Restart();
      Queue(key);
    }
  }

  bool WantsLink() const {
    return session_ && link_ == nullptr &&
           std::any_of(tails_.begin(), tails_.end(),
                       [](const auto& entry) { return !entry.second.log.complete(); });
  }

  void CloseLink() {
    link_.reset();
    bytes_in_flight_ = 0;
    chunks_in_flight_ = 0;
    for (auto& [key, tail] : tails_) tail.log.Restart();
  }

  // Called by gRPC's threads.
  void OnRoom() {
    {
      const MutexLock lock(mutex_);
      if (room_came_) return;
      room_came_ = true;
    }
    wakeup_.Wake();
  }

  // ---- sending

  // Gives each log its turn. True: there is more to do at once.
  bool SendRound() {
    for (int i = 0; i < kMaxChunksInTurn; ++i) {
      if (link_ == nullptr || !has_room_ || round_.empty()) return false;
      if (bytes_in_flight_ >= options_.max_bytes_in_flight ||
          chunks_in_flight_ >= kMaxChunksInFlight) {
        return false;  // an answer comes
      }
      const TailKey key = std::move(round_.front());
      round_.pop_front();
      auto found = tails_.find(key);
      if (found == tails_.end()) continue;
      found->second.is_queued = false;
      SendNext(key, found->second);
    }
    return true;
  }

  void SendNext(const TailKey& key, Tail& tail) {
    absl::StatusOr<std::optional<agent::v1::LogChunk>> chunk = tail.log.Next();
    LogProblem(tail, chunk.status());
    if (!chunk.ok() || !*chunk) {
      if (!tail.log.awaits_answer()) Rest(key, tail);
      return;
    }
    agent::v1::PushRequest request;
    *request.mutable_chunk() = **std::move(chunk);
    if (!link_->Send(request)) {
      has_room_ = false;
      return Queue(key);  // the same bytes are read again once there is room
    }
    tail.poll = absl::ZeroDuration();
    Uncount(tail.log);
    tail.log.Sent(request.chunk());
    Count(tail.log);
    Queue(key);
    if (has_too_many_files()) tail.log.file().Close();
  }

  // The file has nothing new: wait until it grows, or look again after a while.
  void Rest(const TailKey& key, Tail& tail) {
    if (tail.watch < 0 && tail.log.file().is_open()) {
      tail.watch = watch_.Add(tail.log.file().path());
      // It may have grown just before the watch began.
      if (tail.watch >= 0) {
        watched_[tail.watch] = key;
        return Queue(key);
      }
    }
    tail.poll = tail.watch >= 0 ? options_.max_poll
                                : std::clamp(tail.poll * 2, options_.min_poll, options_.max_poll);
    tail.next_poll = remote_ ? NextRemotePoll() : time_.Now() + tail.poll;
    polls_.emplace(tail.next_poll, key);
    if (has_too_many_files()) tail.log.file().Close();
  }

  // Polls all at the same time, so that one look serves them all.
  absl::Time NextRemotePoll() const {
    const absl::Time next = time_.Now() + options_.remote_poll;
    return next - (next - absl::UnixEpoch()) % options_.remote_poll;
  }

  RemoteLogs* Remote() { return remote_ ? &*remote_ : nullptr; }

  // Returns the pieces that the round will read next.
  std::vector<RemoteLogs::Want> Wants() const {
    std::vector<RemoteLogs::Want> wants;
    for (const TailKey& key : round_) {
      const auto found = tails_.find(key);
      if (found == tails_.end() || !found->second.log.wants_to_read()) continue;
      wants.push_back({found->second.log.file().path(), found->second.log.position()});
    }
    return wants;
  }

  void WakePolls(absl::Time now) {
    while (!polls_.empty() && polls_.begin()->first <= now) {
      const TailKey key = polls_.begin()->second;
      Queue(key);
    }
  }

  // Puts the log into the round, once.
  void Queue(const TailKey& key) {
    auto found = tails_.find(key);
    if (found == tails_.end()) return;
    Tail& tail = found->second;
    if (tail.next_poll != absl::InfiniteFuture()) {
      polls_.erase({tail.next_poll, key});
      tail.next_poll = absl::InfiniteFuture();
    }
    if (tail.is_queued || tail.log.complete()) return;
    tail.is_queued = true;
    round_.push_back(key);
  }

  void FinishIfComplete(const std::string& run_key) {
    auto run = runs_.find(run_key);
    if (run == runs_.end() || !run->second.ended) return;
    for (const TailKey& key : run->second.tails) {
      if (!tails_.at(key).log.complete()) return;
    }
    for (const TailKey& key : run->second.tails) RemoveTail(key);
    runs_.erase(run);
    environment_.shipped(run_key);
  }

  void RemoveTail(const TailKey& key) {
    auto found = tails_.find(key);
    Tail& tail = found->second;
    Uncount(tail.log);
    watch_.Remove(tail.watch);
    watched_.erase(tail.watch);
    if (tail.next_poll != absl::InfiniteFuture()) polls_.erase({tail.next_poll, key});
    tails_.erase(found);
  }

  void LogProblem(Tail& tail, const absl::Status& status) {
    if (status.ok() || tail.error == ToStd(status.message())) return;
    tail.error = ToStd(status.message());
    LogEvent(spdlog::level::err, "log_unreadable",
             {{"run", tail.log.run_key()},
              {"error", tail.error},
              {"remedy", absl::IsUnavailable(status)
                             ? "see to the host if it stays away; it tries again"
                             : "make the file readable for the agent; it tries again"}});
  }

  void Count(const LogTail& log) {
    bytes_in_flight_ += log.bytes_in_flight();
    chunks_in_flight_ += log.chunks_in_flight();
  }
  void Uncount(const LogTail& log) {
    bytes_in_flight_ -= log.bytes_in_flight();
    chunks_in_flight_ -= log.chunks_in_flight();
  }

  // True: there are more logs than descriptors, and none keeps its own between two reads.
  bool has_too_many_files() const { return tails_.size() > options_.max_open_files; }

  absl::Time NextTime() const {
    absl::Time next = time_.Now() + absl::Minutes(1);
    if (!polls_.empty()) next = std::min(next, polls_.begin()->first);
    if (WantsLink()) next = std::min(next, next_dial_);
    return next;
  }

  const LogShipperOptions options_;
  const Environment environment_;
  const SteadyTime time_;
  Wakeup wakeup_;

  Mutex mutex_;
  std::deque<Letter> inbox_ ABSL_GUARDED_BY(mutex_);
  bool room_came_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  // The members from here on are the thread's own.
  FileWatch watch_;
  std::optional<RemoteLogs> remote_;  // if the logs are on another host; outlives tails_
  rpc::Backoff backoff_;
  std::optional<Connected> session_;
  std::unique_ptr<PushLink> link_;
  uint64_t link_number_ = 0;
  bool has_room_ = false;
  absl::Time next_dial_ = absl::InfinitePast();
  std::map<std::string, ShippedRun> runs_;
  std::map<TailKey, Tail> tails_;
  std::deque<TailKey> round_;
  std::set<std::pair<absl::Time, TailKey>> polls_;
  std::map<int, TailKey> watched_;
  uint64_t bytes_in_flight_ = 0;
  size_t chunks_in_flight_ = 0;

  std::thread thread_;  // last: it uses all the others
};

LogShipper::LogShipper(LogShipperOptions options, Environment environment)
    : impl_(std::make_unique<Impl>(options, std::move(environment))) {}
LogShipper::~LogShipper() = default;

void LogShipper::Connect(const std::string& cluster, const std::string& journal_id) {
  impl_->Post(Connected{cluster, journal_id});
}
void LogShipper::Disconnect() { impl_->Post(Disconnected{}); }
void LogShipper::Ship(const RunHandle& run, bool ended) { impl_->Post(ToShip{run, ended}); }
void LogShipper::Drop(const std::string& run_key) { impl_->Post(ToDrop{run_key}); }

}  // namespace muster::agents
