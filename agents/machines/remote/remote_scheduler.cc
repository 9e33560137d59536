// Messages, and the thread that handles them.
#include "agents/machines/remote/remote_scheduler.h"

#include <chrono>
#include <utility>

#include "absl/time/clock.h"
#include "agents/machines/verdict.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

// The tick is short enough for waits that are over, the file of hosts and runs to be given up, and
// long enough to cost nothing.
constexpr absl::Duration kTick = absl::Seconds(1);

// A run's hosts get its files from the agent's own machine.
FilesLane::Work FetchOnly(uploads::JobFiles* files) {
  if (files == nullptr) return nullptr;
  return [files](FilesLane::Task* task, const FilesLane::Turn& turn) {
    return files->Fetch(task->brought, turn.patience()).status();
  };
}

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
    : RunScheduler({.starter = "agent", .fetch = FetchOnly(options.files)}, /*hosts=*/{}, board),
      options_(std::move(options)),
      router_(router) {}

RemoteScheduler::~RemoteScheduler() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  StopFetching();
  for (HostEntry& entry : hosts_) router_->SetHost(entry.view.config.name, nullptr);
  layout_turns_.Stop();
  hosts_.clear();  // while their listener is still there
}

void RemoteScheduler::AwaitHosts(absl::Duration patience) {
  MutexLock lock(mutex_);
  const auto due = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(patience);
  while (silent_ > 0 && lock.WaitUntil(changed_, due)) {
  }
}

void RemoteScheduler::Start(std::vector<PlacedRun> placed, std::deque<FinishedRun> finished,
                            bool hold_starts) {
  Post([this, placed = std::move(placed), finished = std::move(finished), hold_starts]() mutable {
    Begin(std::move(placed), std::move(finished), hold_starts);
  });
}

void RemoteScheduler::Enqueue(WaitingRun run) {
  board_->PutQuietly(PendingVerdict(WitnessOf(run.run.run_key)));
  Post([this, run = std::move(run)]() mutable { Take(std::move(run)); });
}

void RemoteScheduler::Adopt(PlacedRun run) {
  Post([this, run = std::move(run)]() mutable { Take(std::move(run)); });
}

void RemoteScheduler::Loop() {
  while (true) {
    {
      MutexLock lock(mutex_);
      const auto due = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(kTick);
      while (!stop_ && messages_.empty() && lock.WaitUntil(changed_, due)) {
      }
      if (stop_) return;
    }
    HandleMessages();
    if (is_working_) {
      WriteHostRecords();
      ReadHosts();
      EndPauses();
      PutBackUnsent();
      GiveUpLostRuns();
      SweepHosts();
      StartReady([this](const ReadyRun& ready) { return PlaceRun(ready); });
      RenewFilesReasons();
    }
    Publish();
    board_->WakeIfNews();
  }
}

// ---- what the agent says

void RemoteScheduler::Begin(std::vector<PlacedRun> placed, std::deque<FinishedRun> finished,
                            bool hold_starts) {
  is_working_ = true;
  std::vector<std::string> names;
  for (const HostEntry& entry : hosts_) names.push_back(entry.view.config.name);
  RemoveOtherHostRecords(options_.hosts_directory, names);
  starts_held_ = hold_starts;
  finished_ = std::move(finished);
  PruneFinished();
  for (PlacedRun& run : placed) Take(std::move(run));
  for (HostEntry& entry : hosts_) entry.link->AskAnew();
}

void RemoteScheduler::OnStartsAllowed() {
  RunScheduler::OnStartsAllowed();
  for (auto& [run_key, run] : active_) Advance(&run);
}

void RemoteScheduler::OnCancel(const std::string& run_key) {
  if (TakeWaiting(run_key)) {
    const ExitRecord exit = {.phase = ExitRecord::Phase::kQueue,
                             .end = ExitRecord::End::kNothingRan,
                             .cause = ExitRecord::Cause::kCanceled,
                             .end_us = absl::ToUnixMicros(absl::Now())};
    return board_->Put(EndVerdict(WitnessOf(run_key), exit));
  }
  const auto found = active_.find(run_key);
  if (found == active_.end()) return;
  found->second.cancel_asked = true;
  Advance(&found->second);
}

void RemoteScheduler::OnForget(const std::string& run_key) {
  board_->Remove(run_key);
  if (TakeWaiting(run_key)) RecordOf(run_key).Remove();
  const auto found = active_.find(run_key);
  if (found == active_.end()) {
    // Canceled in the queue, or not there.
    const absl::StatusOr<LaunchFiles> files = RecordOf(run_key).Read();
    if (files.ok() && files->placement.empty()) RecordOf(run_key).Remove();
    return;
  }
  found->second.forget = true;
  Advance(&found->second);
  FinishIfForgotten(run_key);
}

}  // namespace muster::machines
