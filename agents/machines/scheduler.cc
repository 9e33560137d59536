#include "agents/machines/scheduler.h"

#include <string.h>
#include <sys/wait.h>

#include <cerrno>
#include <utility>

#include "absl/time/clock.h"
#include "agents/machines/container_removal.h"
#include "agents/machines/control_group.h"
#include "agents/machines/process_search.h"
#include "agents/machines/run_environment.h"
#include "agents/machines/run_request.h"
#include "agents/machines/run_user.h"
#include "contract/message_of.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

// Canceled runs whose end is written between two looks at what can start: each is a sync of the
// disk, and many may be canceled at once.
constexpr int kClosesInARow = 16;

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

Scheduler::Scheduler(SchedulerOptions options, std::unique_ptr<Supervisors> supervisors,
                     RunBoard* board)
    : RunScheduler(
          {.starter = "machine", .hostname = options.machine.config.name, .fetch = options.lay_out},
          {{.name = options.machine.config.name, .capacity = options.machine.capacity}}, board),
      options_(std::move(options)),
      supervisors_(std::move(supervisors)),
      remover_([this](const std::string& run_key) {
        Post([this, run_key] { OnContainersGone(run_key); });
      }) {
  Publish();
}

Scheduler::~Scheduler() {
  stop_ = true;
  supervisors_->Post();
  if (thread_.joinable()) thread_.join();
  StopFetching();
}

void Scheduler::Start(std::vector<RunningRun> running, std::deque<std::string> finished,
                      bool hold_starts) {
  starts_held_ = hold_starts;
  for (std::string& run_key : finished) {
    if (!RemoveContainers(run_key)) finished_.push_back(std::move(run_key));
  }
  PruneFinished();
  for (const RunningRun& run : running) AdoptRunning(run);
  Publish();
  thread_ = std::thread([this] { Loop(); });
}

void Scheduler::Enqueue(ArrivingRun run) {
  board_->PutQuietly(PendingVerdict(WitnessOf(run.run.run_key)));
  Post([this, run = std::move(run)]() mutable { Arrive(std::move(run)); });
}

void Scheduler::Loop() {
  while (!stop_) {
    HandleMessages();
    CloseCanceled();
    StartReady([this](const ReadyRun& ready) { return StartRun(ready); });
    Publish();
    board_->WakeIfNews();
    const absl::Duration held = Rest();
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

void Scheduler::Arrive(ArrivingRun what) {
  const std::string& run_key = what.run.run_key;
  if (active_.contains(run_key) || closing_.contains(run_key)) return;
  if (what.brought.uploads().empty()) return PushRun(std::move(what.run));
  AwaitFiles(std::move(what.run), what.brought, what.makes_results);
}

void Scheduler::OnCancel(const std::string& run_key) {
  if (RemoveWaiting(run_key)) {
    closing_.insert(run_key);
    return;
  }
  const auto found = active_.find(run_key);
  if (found == active_.end()) return;
  found->second.cancel_asked = true;
  supervisors_->Terminate(run_key);
}

void Scheduler::OnForget(const std::string& run_key) {
  board_->Remove(run_key);
  // The claim says that the copy of its files is nobody's.
  if (RemoveWaiting(run_key)) {
    DirectoryOf(run_key).CloseWithoutStart(absl::ToUnixMicros(absl::Now())).IgnoreError();
  }
  closing_.erase(run_key);
  const auto found = active_.find(run_key);
  if (found != active_.end()) {
    found->second.forget_at_end = true;
  } else {
    CleanUp(run_key);
  }
}

void Scheduler::OnContainersGone(const std::string& run_key) {
  const auto found = active_.find(run_key);
  if (found == active_.end()) return CleanUp(run_key);
  if (!found->second.awaits_removal) return;
  Active active = std::move(found->second);
  active_.erase(found);
  absl::StatusOr<RunFiles> files = DirectoryOf(run_key).Read();
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
    return Finish(active, VanishedVerdict(WitnessOf(run.run_key), MessageOf(files.status())));
  }
  board_->Put(StartingVerdict(WitnessOf(run.run_key), run.claim.owner.pid));
  active_.insert_or_assign(run.run_key, std::move(active));
  OnStarted(run.run_key);
}

// ---- starting

void Scheduler::CloseCanceled() {
  for (int i = 0; i < kClosesInARow && !closing_.empty() && Rest() == absl::ZeroDuration(); ++i) {
    const std::string run_key = *closing_.begin();
    CloseUnstarted(run_key);
  }
}

absl::Status Scheduler::StartRun(const ReadyRun& ready) {
  const std::string& run_key = ready.run.run_key;
  const NodeAllocation& node = ready.allocation.nodes.front();
  const Capacity& capacity = queue_.ledger().hosts()[node.host].capacity;
  const absl::StatusOr<pid_t> pid = supervisors_->Start(
      run_key, DirectoryOf(run_key).path(), DevicesText(node), DeviceVariables(capacity, node));
  if (!pid.ok()) return pid.status();
  ++started_;
  active_.insert_or_assign(run_key, Active{.run = ready.run, .supervisor = *pid});
  board_->PutQuietly(StartingVerdict(WitnessOf(run_key), *pid));
  // A quick supervisor has written its record before the directory was watched.
  OnStarted(run_key);
  return absl::OkStatus();
}

void Scheduler::PauseFor(const std::string& run_key, const std::string& why) {
  Pause(run_key, why);
  board_->PutQuietly(PendingVerdict(WitnessOf(run_key)));
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
    PauseFor(run_key, MessageOf(closed));
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
    Finish(active, VanishedVerdict(WitnessOf(run_key), MessageOf(files.status())));
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
    PauseFor(active.run.run_key, "the run's supervisor " + SupervisorEnd(wait_status));
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
  // The processes of another user are not this one's to look at, nor to kill.
  if (const std::optional<RunUser> user = ReadRunUser(DirectoryOf(run_key).path()))
    RunAsUser(*user, {"kill-run", run_key});
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
