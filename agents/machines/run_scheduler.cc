#include "agents/machines/run_scheduler.h"

#include <algorithm>
#include <optional>

#include "contract/message_of.h"
#include "contract/sentences.h"
#include "daemon/log.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

// The pause between two tries to start a run when there is trouble: soon enough for people, rare
// enough for the machine.
constexpr absl::Duration kStartRetry = absl::Seconds(5);

}  // namespace

RunScheduler::RunScheduler(Basics basics, std::vector<ClusterHost> hosts, RunBoard* board)
    : board_(board),
      queue_(hosts),
      basics_(std::move(basics)),
      load_{.ledger = Ledger(std::move(hosts))} {
  if (basics_.fetch == nullptr) return;
  files_lane_ = std::make_unique<FilesLane>(basics_.fetch, [this](FilesNews news) {
    Post([this, news = std::move(news)] { OnFiles(news); });
  });
}

// ---- messages

void RunScheduler::Post(Message message) {
  {
    const MutexLock lock(mutex_);
    messages_.push_back(std::move(message));
  }
  Wake();
}

void RunScheduler::HandleMessages() {
  std::vector<Message> messages;
  {
    const MutexLock lock(mutex_);
    messages.swap(messages_);
  }
  for (Message& message : messages) message();
}

void RunScheduler::OnHold(const std::string& run_key, bool held) {
  const auto found = awaiting_files_.find(run_key);
  if (found != awaiting_files_.end()) {
    found->second.run.held = held;
  } else if (!queue_.SetHeld(run_key, held)) {
    return;
  }
  board_->SetHeld(run_key, held);
}

void RunScheduler::OnFiles(const FilesNews& news) {
  const auto found = awaiting_files_.find(news.run_key);
  if (found == awaiting_files_.end() || found->second.ticket != news.ticket) return;
  if (news.kind == FilesNews::Kind::kWaits) return board_->SetOwnReason(news.run_key, news.reason);
  QueuedRun run = std::move(found->second.run);
  awaiting_files_.erase(found);
  board_->ClearOwnReason(news.run_key);
  if (news.kind == FilesNews::Kind::kReady) return PushRun(std::move(run));
  OnNoFiles(news.run_key);
  board_->Put(NotStartedVerdict(WitnessOf(news.run_key), news.failure));
}

// ---- runs that wait

void RunScheduler::PushRun(QueuedRun run) {
  board_->SetHeld(run.run_key, run.held);
  queue_.Push(std::move(run));
}

void RunScheduler::AwaitFiles(QueuedRun run, const v1::JobSpec& brought, bool makes_results) {
  const std::string run_key = run.run_key;
  if (files_lane_ == nullptr || AwaitsFiles(run_key)) return;
  board_->SetHeld(run_key, run.held);
  board_->SetOwnReason(run_key, FetchesFiles());
  const uint64_t ticket = files_lane_->Add(run_key, brought, makes_results);
  awaiting_files_.emplace(run_key, AwaitingFiles{.run = std::move(run), .ticket = ticket});
}

bool RunScheduler::RemoveWaiting(const std::string& run_key) {
  const auto found = awaiting_files_.find(run_key);
  if (found == awaiting_files_.end()) return queue_.Remove(run_key).has_value();
  files_lane_->Drop(found->second.ticket);
  awaiting_files_.erase(found);
  board_->ClearOwnReason(run_key);
  return true;
}

// ---- starts

void RunScheduler::Pause(const std::string& run_key, const std::string& why) {
  LogEvent(spdlog::level::warn, "run_not_started",
           {{"run", run_key}, {"retry_in", absl::FormatDuration(kStartRetry)}, {"reason", why}});
  hold_until_ = time_.Now() + kStartRetry;
  hold_reason_ = contract::MakeReason(
      v1::STATE_REASON_CODE_AGENT_RETRIES,
      {.detail = fmt::format("the {} cannot start runs now: {}", basics_.starter, why)});
}

absl::Duration RunScheduler::Rest() const {
  return std::max(absl::ZeroDuration(), hold_until_ - time_.Now());
}

void RunScheduler::StartReady(const std::function<absl::Status(const ReadyRun&)>& start) {
  if (!MayStart()) return;
  for (const ReadyRun& ready : queue_.Round(time_.Now())) {
    if (MayStart()) {
      const absl::Status started = start(ready);
      if (started.ok()) continue;
      Pause(ready.run.run_key, MessageOf(started));
    }
    // This one could not be started, or one before it could not.
    queue_.Release(ready.run.run_key);
    queue_.Push(ready.run);
  }
}

// ---- what is told

void RunScheduler::PublishReasons() {
  const QueuedRun* first = queue_.First();
  if (first == nullptr) return board_->ClearReasons();
  if (!MayStart())
    return board_->SetReasons(first->run_key, starts_held_ ? AwaitsBroker() : hold_reason_);
  absl::Time start = absl::InfiniteFuture();
  if (const std::optional<BlockedRun>& blocked = queue_.blocked(); blocked.has_value()) {
    first = &blocked->run;
    // The start in the time of day.
    start = absl::Now() + (blocked->start - time_.Now());
  }
  board_->SetReasons(first->run_key, WaitsFor(queue_.ledger().Shortage(first->request)), start);
}

void RunScheduler::Publish(size_t others, size_t running, std::vector<HostView> hosts,
                           std::vector<v1::ClusterIssue> issues) {
  PublishReasons();
  QueueOutlook outlook = queue_.outlook();
  outlook.waiting +=
      static_cast<size_t>(std::count_if(awaiting_files_.begin(), awaiting_files_.end(),
                                        [](const auto& entry) { return !entry.second.run.held; }));
  const MutexLock lock(mutex_);
  load_ = {.ledger = queue_.ledger(),
           .occupants = queue_.occupants(),
           .outlook = std::move(outlook),
           .hosts = std::move(hosts),
           .issues = std::move(issues),
           .waiting = queue_.waiting() + queue_.held() + awaiting_files_.size() + others,
           .running = running};
}

Load RunScheduler::load() const {
  const MutexLock lock(mutex_);
  return load_;
}

absl::Duration RunScheduler::WaitOf(const QueuedRun& run) const {
  const Load now = load();
  return machines::WaitOf(run, now.outlook, now.ledger, now.occupants, time_.Now());
}

}  // namespace muster::machines
