#include "agents/machines/scheduler.h"

#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/time/clock.h"
#include "agents/machines/container_removal.h"
#include "agents/machines/control_group.h"
#include "agents/machines/process_search.h"
#include "agents/machines/run_environment.h"
#include "agents/machines/run_request.h"
#include "contract/sentences.h"
#include "contract/text.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"

namespace muster::machines {
namespace {

// Between two tries to start a run when the machine is in trouble: soon enough for people, rare
// enough for the machine.
constexpr absl::Duration kStartRetry = absl::Seconds(5);

// Canceled runs whose end is written between two looks at what can start: each is a sync of the
// disk, and many may be canceled at once.
constexpr int kClosesInARow = 16;

std::string Text(const absl::Status& status) { return std::string(ToStd(status.message())); }

std::string SupervisorEnd(std::optional<int> wait_status) {
  if (!wait_status.has_value()) return "ended";
  if (WIFSIGNALED(*wait_status))
    return fmt::format("was killed by signal {}", WTERMSIG(*wait_status));
  const int code = WEXITSTATUS(*wait_status);
  if (code > kSupervisorErrnoBase) {
    return fmt::format("could not make its claim: {}",
                       strerrordesc_np(code - kSupervisorErrnoBase));
  }
  if (code == kSupervisorUnrecorded) return "could not write the exit record";
  return fmt::format("ended with exit code {}", code);
}

// Returns whether the supervisor itself says that it has not taken its run. A missing claim shows
// nothing: the run's directory is open to the run.
bool TookNothing(std::optional<int> wait_status) {
  if (!wait_status.has_value() || !WIFEXITED(*wait_status)) return false;
  const int code = WEXITSTATUS(*wait_status);
  return code == kSupervisorUsage || code > kSupervisorErrnoBase;
}

}  // namespace

Scheduler::Scheduler(SchedulerOptions options, std::vector<ClusterHost> hosts,
                     std::unique_ptr<Supervisors> supervisors, RunBoard* board)
    : options_(std::move(options)),
      board_(board),
      supervisors_(std::move(supervisors)),
      load_{.ledger = Ledger(hosts)},
      queue_(std::move(hosts)),
      remover_([this](const std::string& run_key) { Post(ContainersGoneMessage{run_key}); }) {
  if (options_.lay_out == nullptr) return;
  files_lane_ = std::make_unique<FilesLane>(options_.lay_out,
                                            [this](FilesNews news) { Post(std::move(news)); });
}

Scheduler::~Scheduler() {
  stop_ = true;
  supervisors_->Post();
  if (thread_.joinable()) thread_.join();
}

void Scheduler::Start(std::vector<RunningRun> running, std::deque<std::string> finished,
                      bool hold_starts) {
  starts_held_ = hold_starts;
  for (std::string& run_key : finished) {
    if (!RemoveContainers(run_key)) finished_.push_back(std::move(run_key));
  }
  PruneFinished();
  for (const RunningRun& run : running) AdoptRunning(run);
  PublishReasons();
  PublishLoad();
  thread_ = std::thread([this] { Loop(); });
}

void Scheduler::Enqueue(QueuedRun run) { Post(std::move(run)); }
void Scheduler::Enqueue(RunWithFiles run) { Post(std::move(run)); }
void Scheduler::Cancel(const std::string& run_key) { Post(CancelMessage{run_key}); }
void Scheduler::Forget(const std::string& run_key) { Post(ForgetMessage{run_key}); }
void Scheduler::SetHeld(const std::string& run_key, bool held) { Post(HoldMessage{run_key, held}); }
void Scheduler::AllowStarts() { Post(AllowStartsMessage{}); }

Scheduler::Load Scheduler::load() const {
  const std::lock_guard lock(mutex_);
  return load_;
}

absl::Duration Scheduler::WaitOf(const QueuedRun& run) const {
  const Load now = load();
  return machines::WaitOf(run, now.outlook, now.ledger, now.occupants, time_.Now());
}

void Scheduler::Post(Message message) {
  {
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
  }
  supervisors_->Post();
}

void Scheduler::Loop() {
  while (!stop_) {
    std::vector<Message> messages;
    {
      const std::lock_guard lock(mutex_);
      messages.swap(messages_);
    }
    for (Message& message : messages) {
      std::visit([this](auto& m) { Handle(std::move(m)); }, message);
    }
    StartReady();
    PublishReasons();
    PublishLoad();
    board_->WakeIfNews();
    const absl::Duration held = hold_until_ - time_.Now();
    const bool has_closes = !closing_.empty();
    const bool try_again = (queue_.waiting() > 0 || has_closes) && held > absl::ZeroDuration();
    const absl::Duration rest = has_closes ? absl::ZeroDuration() : absl::InfiniteDuration();
    for (const SupervisorEvent& event : supervisors_->Wait(try_again ? held : rest)) {
      if (event.record == kStartedFile) OnStarted(event.run_key);
      if (event.record == kExitFile) OnExitRecord(event.run_key);
      if (event.kind == SupervisorEvent::Kind::kEnded) OnEnded(event.run_key);
    }
  }
}

// ---- messages

void Scheduler::Handle(QueuedRun run) {
  if (active_.contains(run.run_key) || closing_.contains(run.run_key)) return;
  board_->SetHeld(run.run_key, run.held);
  queue_.Push(std::move(run));
}

void Scheduler::Handle(RunWithFiles what) {
  const std::string run_key = what.run.run_key;
  const bool is_here = active_.contains(run_key) || closing_.contains(run_key) ||
                       awaiting_files_.contains(run_key) || files_lane_ == nullptr;
  if (is_here) return;
  board_->SetHeld(run_key, what.run.held);
  board_->SetOwnReason(run_key, FetchesFiles());
  const uint64_t ticket = files_lane_->Add(run_key, what.brought, what.makes_results);
  awaiting_files_.emplace(run_key, AwaitingFiles{.run = std::move(what.run), .ticket = ticket});
}

void Scheduler::Handle(FilesNews news) {
  const auto found = awaiting_files_.find(news.run_key);
  if (found == awaiting_files_.end() || found->second.ticket != news.ticket) return;
  if (news.kind == FilesNews::Kind::kWaits) return board_->SetOwnReason(news.run_key, news.reason);
  QueuedRun run = std::move(found->second.run);
  awaiting_files_.erase(found);
  board_->ClearOwnReason(news.run_key);
  if (news.kind == FilesNews::Kind::kReady) return Handle(std::move(run));
  board_->Put(NotStartedVerdict(WitnessOf(news.run_key), news.failure));
}

void Scheduler::Handle(const HoldMessage& message) {
  if (const auto found = awaiting_files_.find(message.run_key); found != awaiting_files_.end()) {
    found->second.run.held = message.held;
    return board_->SetHeld(message.run_key, message.held);
  }
  if (!queue_.SetHeld(message.run_key, message.held)) return;
  board_->SetHeld(message.run_key, message.held);
}

void Scheduler::Handle(const CancelMessage& message) {
  if (TakeWaiting(message.run_key)) {
    closing_.insert(message.run_key);
    return;
  }
  const auto found = active_.find(message.run_key);
  if (found == active_.end()) return;
  found->second.cancel_asked = true;
  supervisors_->Terminate(message.run_key);
}

void Scheduler::Handle(const ForgetMessage& message) {
  board_->Remove(message.run_key);
  // The claim says that the copy of its files is nobody's.
  if (TakeWaiting(message.run_key)) {
    DirectoryOf(message.run_key).CloseWithoutStart(absl::ToUnixMicros(absl::Now())).IgnoreError();
  }
  closing_.erase(message.run_key);
  const auto found = active_.find(message.run_key);
  if (found != active_.end()) {
    found->second.forget_at_end = true;
  } else {
    CleanUp(message.run_key);
  }
}

void Scheduler::Handle(const ContainersGoneMessage& message) {
  const auto found = active_.find(message.run_key);
  if (found == active_.end()) return CleanUp(message.run_key);
  if (!found->second.awaits_removal) return;
  Active active = std::move(found->second);
  active_.erase(found);
  absl::StatusOr<RunFiles> files = DirectoryOf(message.run_key).Read();
  Conclude(std::move(active), files.ok() ? *std::move(files) : RunFiles{});
}

void Scheduler::AdoptRunning(const RunningRun& run) {
  const RunDirectory directory = DirectoryOf(run.run_key);
  Active active = {.run = {.run_key = run.run_key}, .supervisor = run.claim.owner.pid};
  const absl::Status adopted = supervisors_->Adopt(run.run_key, directory.path(), run.claim.owner);
  queue_.Restore(run.run_key, run.allocation,
                 time_.Now() + run.time_limit - absl::Milliseconds(AgeMs(run.claim.owner)));
  if (!adopted.ok()) {
    absl::StatusOr<RunFiles> files = directory.Read();
    if (files.ok()) return Conclude(std::move(active), *std::move(files));
    return Finish(active, VanishedVerdict(WitnessOf(run.run_key), Text(files.status())));
  }
  board_->Put(StartingVerdict(WitnessOf(run.run_key), run.claim.owner.pid));
  active_.insert_or_assign(run.run_key, std::move(active));
  OnStarted(run.run_key);
}

// ---- starting

void Scheduler::StartReady() {
  for (int i = 0; i < kClosesInARow && !closing_.empty() && time_.Now() >= hold_until_; ++i) {
    const std::string run_key = *closing_.begin();
    CloseUnstarted(run_key);
  }
  if (AreStartsHeld()) return;
  for (const ReadyRun& ready : queue_.Round(time_.Now())) {
    if (!AreStartsHeld()) {
      const absl::Status started = StartRun(ready);
      if (started.ok()) continue;
      HoldStarts(ready.run.run_key, Text(started));
    }
    // This one could not be started, or one before it could not.
    queue_.Release(ready.run.run_key);
    queue_.Push(ready.run);
  }
}

absl::Status Scheduler::StartRun(const ReadyRun& ready) {
  const std::string& run_key = ready.run.run_key;
  const NodeAllocation& node = ready.allocation.nodes.front();
  const Capacity& capacity = queue_.ledger().hosts()[node.host].capacity;
  const absl::StatusOr<pid_t> pid = supervisors_->Start(
      run_key, DirectoryOf(run_key).path(), DevicesText(node), DeviceVariables(capacity, node));
  if (!pid.ok()) return pid.status();
  ++supervisors_started_;
  active_.insert_or_assign(run_key, Active{.run = ready.run, .supervisor = *pid});
  board_->PutQuietly(StartingVerdict(WitnessOf(run_key), *pid));
  // A quick supervisor has written its record before the directory was watched.
  OnStarted(run_key);
  return absl::OkStatus();
}

void Scheduler::HoldStarts(const std::string& run_key, const std::string& why) {
  spdlog::warn("run_not_started run={} retry_in={} reason=\"{}\"", run_key,
               absl::FormatDuration(kStartRetry), why);
  hold_until_ = time_.Now() + kStartRetry;
  hold_reason_ = contract::MakeReason(v1::STATE_REASON_CODE_AGENT_RETRIES,
                                      {.detail = "the machine cannot start runs now: " + why});
  board_->PutQuietly(PendingVerdict(WitnessOf(run_key)));
}

bool Scheduler::TakeWaiting(const std::string& run_key) {
  const auto found = awaiting_files_.find(run_key);
  if (found == awaiting_files_.end()) return queue_.Remove(run_key).has_value();
  files_lane_->Drop(found->second.ticket);
  awaiting_files_.erase(found);
  board_->ClearOwnReason(run_key);
  return true;
}

void Scheduler::CloseUnstarted(const std::string& run_key) {
  const ExitRecord exit = {.phase = ExitRecord::Phase::kQueue,
                           .end = ExitRecord::End::kNothingRan,
                           .cause = ExitRecord::Cause::kCanceled,
                           .end_us = absl::ToUnixMicros(absl::Now())};
  const absl::Status closed = DirectoryOf(run_key).CloseWithoutStart(exit.end_us);
  if (closed.ok()) {
    closing_.erase(run_key);
    board_->Put(EndVerdict(WitnessOf(run_key), exit));
  } else {
    closing_.insert(run_key);
    HoldStarts(run_key, Text(closed));
  }
}

// ---- watching

void Scheduler::OnStarted(const std::string& run_key) {
  const auto found = active_.find(run_key);
  if (found == active_.end() || found->second.running) return;
  const absl::StatusOr<std::optional<Started>> started = DirectoryOf(run_key).ReadStarted();
  if (!started.ok() || !started->has_value()) return;
  found->second.running = true;
  if (!found->second.forget_at_end) board_->Put(RunningVerdict(WitnessOf(run_key), **started));
}

void Scheduler::OnExitRecord(const std::string& run_key) {
  const auto found = active_.find(run_key);
  if (found == active_.end()) return;
  queue_.Release(run_key);
}

void Scheduler::OnEnded(const std::string& run_key) {
  const std::optional<int> wait_status = supervisors_->Forget(run_key);
  auto node = active_.extract(run_key);
  if (node.empty()) return;
  Active& active = node.mapped();
  active.wait_status = wait_status;
  absl::StatusOr<RunFiles> files = DirectoryOf(run_key).Read();
  if (!files.ok()) {
    Finish(active, VanishedVerdict(WitnessOf(run_key), Text(files.status())));
  } else if (!files->exit.has_value() && !DirectoryOf(run_key).Exists()) {
    Finish(active, LostVerdict(WitnessOf(run_key), DirectoryOf(run_key).path()));
  } else if (TookNothing(wait_status) && !files->HasBegun()) {
    OnNotTaken(active, *wait_status);
  } else if (!FollowClaim(active, *files)) {
    Conclude(std::move(active), *std::move(files));
  }
}

void Scheduler::OnNotTaken(const Active& active, int wait_status) {
  queue_.Release(active.run.run_key);
  if (active.forget_at_end) {
    CleanUp(active.run.run_key);
  } else if (active.cancel_asked) {
    CloseUnstarted(active.run.run_key);
  } else {
    HoldStarts(active.run.run_key, "the run's supervisor " + SupervisorEnd(wait_status));
    queue_.Push(active.run);
  }
}

bool Scheduler::FollowClaim(Active active, const RunFiles& files) {
  if (files.exit.has_value()) return false;
  const std::string run_key = active.run.run_key;
  ProcessId owner;
  if (files.claimed) {
    if (files.claim.has_value()) owner = files.claim->owner;
  } else {
    owner = ListSupervisors()[DirectoryOf(run_key).path()].owner;
  }
  if (owner.pid == active.supervisor) return false;
  if (!supervisors_->Adopt(run_key, DirectoryOf(run_key).path(), owner).ok()) return false;
  active.supervisor = owner.pid;
  active_.insert_or_assign(run_key, std::move(active));
  OnStarted(run_key);
  return true;
}

void Scheduler::Conclude(Active active, RunFiles files) {
  const std::string run_key = active.run.run_key;
  const Witness witness = WitnessOf(run_key);
  // The record may have been written after it was looked for, just before its writer ended.
  if (!files.exit.has_value()) {
    if (absl::StatusOr<RunFiles> again = DirectoryOf(run_key).Read(); again.ok())
      files = *std::move(again);
  }
  if (files.exit.has_value()) {
    // A full disk may have kept the cancel file from being written; the TERM was ours nevertheless.
    if (active.cancel_asked && files.exit->cause == ExitRecord::Cause::kTerminated) {
      files.exit->cause = ExitRecord::Cause::kCanceled;
    }
    return Finish(active, EndVerdict(witness, *files.exit));
  }
  const std::string boot_id = ReadBootId();
  if (files.claim.has_value() && files.claim->owner.boot_id != boot_id) {
    return Finish(
        active,
        VanishedVerdict(
            witness,
            fmt::format("the machine was started anew while the run was there (boot {}, now {})",
                        files.claim->owner.boot_id, boot_id)));
  }
  KillStragglers(run_key);
  if (RemoveContainers(run_key)) {
    active.awaits_removal = true;
    if (!active.forget_at_end && !board_->Contains(run_key)) board_->PutUnseen(run_key);
    active_.insert_or_assign(run_key, std::move(active));
    return;
  }
  RemoveGroupsOf(DirectoryOf(run_key).path());
  Finish(active,
         VanishedVerdict(witness,
                         fmt::format("the run's supervisor (process {}) {} and left no exit record",
                                     active.supervisor, SupervisorEnd(active.wait_status))));
}

void Scheduler::Finish(const Active& active, const agents::Observation& end) {
  queue_.Release(active.run.run_key);
  if (active.forget_at_end) {
    CleanUp(active.run.run_key);
  } else {
    board_->Put(end);
  }
}

// ---- the rest

RunDirectory Scheduler::DirectoryOf(const std::string& run_key) const {
  return RunDirectory(options_.runs_directory + "/" + run_key);
}

Witness Scheduler::WitnessOf(const std::string& run_key) const {
  return {.run_key = run_key, .hostname = options_.hostname, .now = absl::Now()};
}

void Scheduler::PublishReasons() {
  const QueuedRun* first = queue_.First();
  if (first == nullptr) return board_->ClearReasons();
  if (AreStartsHeld())
    return board_->SetReasons(first->run_key, starts_held_ ? AwaitsBroker() : hold_reason_);
  absl::Time start = absl::InfiniteFuture();
  if (const std::optional<BlockedRun>& blocked = queue_.blocked(); blocked.has_value()) {
    first = &blocked->run;
    // By the time of day.
    start = absl::Now() + (blocked->start - time_.Now());
  }
  board_->SetReasons(first->run_key, WaitsFor(queue_.ledger().Shortage(first->request)), start);
}

void Scheduler::PublishLoad() {
  QueueOutlook outlook = queue_.outlook();
  outlook.waiting +=
      static_cast<size_t>(std::count_if(awaiting_files_.begin(), awaiting_files_.end(),
                                        [](const auto& entry) { return !entry.second.run.held; }));
  const std::lock_guard lock(mutex_);
  load_ = {.ledger = queue_.ledger(),
           .occupants = queue_.occupants(),
           .outlook = std::move(outlook),
           .waiting = queue_.waiting() + queue_.held() + closing_.size() + awaiting_files_.size(),
           .running = active_.size()};
}

bool Scheduler::RemoveContainers(const std::string& run_key) {
  const std::string directory = DirectoryOf(run_key).path();
  if (!MayHaveContainers(directory)) return false;
  remover_.Remove(run_key, directory);
  return true;
}

void Scheduler::CleanUp(const std::string& run_key) {
  if (RemoveContainers(run_key)) return;
  DirectoryOf(run_key).RemoveBookkeeping();
  finished_.push_back(run_key);
  PruneFinished();
}

void Scheduler::PruneFinished() {
  while (finished_.size() > options_.keep_finished_runs) {
    DirectoryOf(finished_.front()).RemoveLogs();
    finished_.pop_front();
  }
}

}  // namespace muster::machines
