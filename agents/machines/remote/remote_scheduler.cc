// Messages, and the thread that handles them.
#include "agents/machines/remote/remote_scheduler.h"

#include <utility>

#include "absl/time/clock.h"
#include "agents/machines/verdict.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

// Often enough for waits that are over, the file of hosts and runs to be given up; rare enough to
// cost nothing.
constexpr absl::Duration kTick = absl::Seconds(1);

}  // namespace

absl::StatusOr<std::unique_ptr<RemoteScheduler>> RemoteScheduler::Create(
    RemoteSchedulerOptions options, std::vector<HostConfig> hosts, RunBoard* board,
    HostRouter* router) {
  std::unique_ptr<RemoteScheduler> made(new RemoteScheduler(std::move(options), board, router));
  for (const HostConfig& host : hosts) {
    if (absl::Status s = made->AddHost(host); !s.ok()) return s;
  }
  made->RebuildQueue();
  made->Publish();
  for (HostEntry& entry : made->hosts_) entry.link->StartThreads();
  made->thread_ = std::thread([scheduler = made.get()] { scheduler->Loop(); });
  return made;
}

RemoteScheduler::RemoteScheduler(RemoteSchedulerOptions options, RunBoard* board,
                                 HostRouter* router)
    : options_(std::move(options)),
      board_(board),
      router_(router),
      load_{.ledger = Ledger(std::vector<ClusterHost>{}), .hosts = {}},
      queue_(std::vector<ClusterHost>{}) {
  if (options_.files == nullptr) return;
  // Each of its hosts gets them from here.
  files_lane_ = std::make_unique<FilesLane>(
      [files = options_.files](FilesLane::Task* task, const FilesLane::Turn& turn) {
        return files->Fetch(task->brought, turn.patience()).status();
      },
      [this](FilesNews news) { Post(std::move(news)); });
}

RemoteScheduler::~RemoteScheduler() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (HostEntry& entry : hosts_) router_->SetHost(entry.view.config.name, nullptr);
  layout_turns_.Stop();
  hosts_.clear();  // while their listener is still there
}

void RemoteScheduler::AwaitHosts(absl::Duration patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoNanoseconds(patience),
                    [this] { return spoken_ == load_.hosts.size(); });
}

void RemoteScheduler::Start(std::vector<PlacedRun> placed, std::vector<WaitingRun> waiting,
                            std::deque<FinishedRun> finished, bool hold_starts) {
  Post(StartMessage{.placed = std::move(placed),
                    .waiting = std::move(waiting),
                    .finished = std::move(finished),
                    .hold_starts = hold_starts});
}

void RemoteScheduler::Enqueue(WaitingRun run) { Post(std::move(run)); }
void RemoteScheduler::Adopt(PlacedRun run) { Post(std::move(run)); }
void RemoteScheduler::Cancel(const std::string& run_key) { Post(CancelMessage{run_key}); }
void RemoteScheduler::Forget(const std::string& run_key) { Post(ForgetMessage{run_key}); }
void RemoteScheduler::SetHeld(const std::string& run_key, bool held) {
  Post(HoldMessage{run_key, held});
}
void RemoteScheduler::AllowStarts() { Post(AllowStartsMessage{}); }

RemoteScheduler::Load RemoteScheduler::load() const {
  const std::lock_guard lock(mutex_);
  return load_;
}

absl::Duration RemoteScheduler::WaitOf(const QueuedRun& run) const {
  const Load now = load();
  return machines::WaitOf(run, now.outlook, now.ledger, now.occupants, time_.Now());
}

void RemoteScheduler::Post(Message message) {
  {
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
  }
  changed_.notify_all();
}

std::vector<RemoteScheduler::Message> RemoteScheduler::WaitForMessages() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoNanoseconds(kTick),
                    [this] { return stop_ || !messages_.empty(); });
  return std::exchange(messages_, {});
}

void RemoteScheduler::Loop() {
  while (true) {
    std::vector<Message> messages = WaitForMessages();
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
    }
    for (Message& message : messages) {
      std::visit([this](auto& m) { Handle(std::move(m)); }, message);
    }
    if (is_working_) {
      WriteHostRecords();
      ReadHosts();
      EndPauses();
      PutBackUnsent();
      GiveUpLostRuns();
      SweepHosts();
      StartReady();
      RenewFilesReasons();
    }
    Publish();
    board_->WakeIfNews();
  }
}

// ---- what the agent says

void RemoteScheduler::Handle(StartMessage message) {
  is_working_ = true;
  std::vector<std::string> names;
  for (const HostEntry& entry : hosts_) names.push_back(entry.view.config.name);
  RemoveOtherHostRecords(options_.hosts_directory, names);
  starts_held_ = message.hold_starts;
  finished_ = std::move(message.finished);
  PruneFinished();
  for (PlacedRun& run : message.placed) Handle(std::move(run));
  for (HostEntry& entry : hosts_) entry.link->AskAnew();
  for (WaitingRun& run : message.waiting) Handle(std::move(run));
}

void RemoteScheduler::Handle(const AllowStartsMessage&) {
  starts_held_ = false;
  for (auto& [run_key, run] : active_) Advance(&run);
}

void RemoteScheduler::Handle(const HoldMessage& message) {
  if (const auto found = awaiting_files_.find(message.run_key); found != awaiting_files_.end()) {
    found->second.what.run.held = message.held;
    return board_->SetHeld(message.run_key, message.held);
  }
  const auto found = waiting_.find(message.run_key);
  if (found == waiting_.end() || !queue_.SetHeld(message.run_key, message.held)) return;
  found->second.run.held = message.held;
  board_->SetHeld(message.run_key, message.held);
}

void RemoteScheduler::Handle(const CancelMessage& message) {
  if (TakeWaiting(message.run_key)) {
    const ExitRecord exit = {.phase = ExitRecord::Phase::kQueue,
                             .end = ExitRecord::End::kNothingRan,
                             .cause = ExitRecord::Cause::kCanceled,
                             .end_us = absl::ToUnixMicros(absl::Now())};
    board_->Put(EndVerdict({.run_key = message.run_key, .hostname = "", .now = absl::Now()}, exit));
    return;
  }
  const auto found = active_.find(message.run_key);
  if (found == active_.end()) return;
  found->second.cancel_asked = true;
  Advance(&found->second);
}

void RemoteScheduler::Handle(const ForgetMessage& message) {
  board_->Remove(message.run_key);
  if (TakeWaiting(message.run_key)) RecordOf(message.run_key).Remove();
  const auto found = active_.find(message.run_key);
  if (found == active_.end()) {
    // Canceled in the queue, or not there.
    const absl::StatusOr<LaunchFiles> files = RecordOf(message.run_key).Read();
    if (files.ok() && files->placement.empty()) RecordOf(message.run_key).Remove();
    return;
  }
  found->second.forget = true;
  Advance(&found->second);
  FinishIfForgotten(message.run_key);
}

void RemoteScheduler::Handle(HostMessage message) {
  std::visit([&](auto& event) { On(message.host, std::move(event)); }, message.event);
}

}  // namespace muster::machines
