// Finding out whether Slurm has a run, and which of its jobs.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "agents/slurm/backend.h"
#include "agents/slurm/outcomes.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

using agents::LookupOutcome;

// A claim holds one job id.
constexpr size_t kMaxClaimBytes = 64;
// A rename or a link in one directory gets this time; a longer wait means that the file server is
// stuck.
constexpr absl::Duration kClaimTimeout = absl::Seconds(30);
// A claim is written at once, and file servers show it within a minute; one that holds no id for
// longer never will.
constexpr absl::Duration kClaimGrace = absl::Minutes(2);
// The longest time since the launch of a run whose launch the journal has lost.
constexpr absl::Duration kLongestMemory = absl::Hours(24 * 30);
// Clocks of the agent's host and of slurmctld differ by less, also after one was set by an hour.
constexpr absl::Duration kClockSlack = absl::Hours(24);
// The age of an answer that runs share. Hundreds of runs whose answers were lost are looked up in
// one moment after a break, and one squeue serves all.
constexpr absl::Duration kSharedAnswerAge = absl::Seconds(1);

// Returns the best of the jobs with the run's name: one that has not ended, then the lowest id. A
// submission that was refused can leave a failed job that never had nodes, which does not count.
std::optional<JobId> BestInQueue(const std::vector<QueueRow>& rows) {
  const QueueRow* best = nullptr;
  for (const QueueRow& row : rows) {
    if (row.state.phase == JobPhase::kFailed && row.node_list.empty()) continue;
    const auto rank = [](const QueueRow& r) {
      return std::pair(HasEnded(r.state.phase), r.job_id);
    };
    if (best == nullptr || rank(row) < rank(*best)) best = &row;
  }
  if (best == nullptr) return std::nullopt;
  return best->job_id;
}

std::optional<JobId> BestInHistory(const std::vector<HistoryRow>& rows) {
  std::optional<JobId> best;
  for (const HistoryRow& row : rows) {
    if (!best.has_value() || row.job_id < *best) best = row.job_id;
  }
  return best;
}

// Returns Slurm's number of the array that is called so, by any of its tasks; nothing if there is
// none.
template <typename Row>
std::optional<uint64_t> NumberOf(const std::string& array, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    if (row.name == array) return row.job_id.number;
  }
  return std::nullopt;
}

// Returns the Slurm job that a claim names, if it does.
std::optional<JobId> OwnerIn(std::string_view claim) {
  if (claim.ends_with('\n')) claim.remove_suffix(1);
  return ParseJobId(claim);
}

}  // namespace

std::string SlurmBackend::RunOf(const std::string& name, const JobId& id) const {
  if (!id.task.has_value()) return name;
  return arrays_.RunAt(name, *id.task).value_or(name);
}

absl::StatusOr<std::optional<JobId>> SlurmBackend::ReadOwner(const RunPaths& paths) {
  PatientReads& reads = ReadsOf(paths.run_key());
  const absl::StatusOr<std::string> text = reads.ReadFile(paths.claim(), kMaxClaimBytes);
  if (text.status().code() == absl::StatusCode::kNotFound) return std::nullopt;
  if (text.ok()) {
    if (const std::optional<JobId> owner = OwnerIn(*text); owner.has_value()) return owner;
  }
  const absl::StatusOr<hosts::FileInfo> claim = reads.Stat(paths.claim());
  if (claim.ok() && claim->type == hosts::FileType::kDirectory) return std::nullopt;
  if (!text.ok()) return text.status();
  if (claim.ok()) {
    const absl::StatusOr<absl::Time> now = TimeOfFiles(paths);
    if (now.ok() && *now - claim->modify_time > kClaimGrace) return std::nullopt;
  }
  return absl::UnavailableError(
      fmt::format("\"{}\" does not hold a Slurm job id yet", paths.claim()));
}

absl::StatusOr<absl::Time> SlurmBackend::TimeOfFiles(const RunPaths& paths) {
  const std::string mark = paths.root() + "/.now";
  PatientReads& reads = ReadsOf(paths.run_key());
  const absl::Status written = reads.Do(mark, [mark](hosts::Host* host) {
    return host->WriteFile(mark, "", {.mode = 0600, .sync = false});
  });
  if (!written.ok()) return written;
  const absl::StatusOr<hosts::FileInfo> info = reads.Stat(mark);
  if (!info.ok()) return info.status();
  return info->modify_time;
}

// Never removes what it has not seen: a job whose submission is late may claim the run at any
// moment. A claim that it takes away stays there, and is read again: its job may have written
// meanwhile.
absl::Status SlurmBackend::TakeDeadClaim(const RunPaths& paths) {
  const absl::StatusOr<hosts::FileInfo> there = host_->Stat(paths.claim());
  if (absl::IsNotFound(there.status())) return absl::OkStatus();
  if (!there.ok()) return there.status();
  // A fence, of an agent that died before it could say what it was for.
  if (there->type == hosts::FileType::kDirectory) return host_->RemoveTree(paths.claim());
  const absl::StatusOr<std::optional<JobId>> owner = ReadOwner(paths);
  if (!owner.ok()) return owner.status();
  const auto claimed_by = [](const JobId& job) {
    return absl::UnavailableError(
        fmt::format("Slurm job {} claimed the run while it was looked up", job.ToString()));
  };
  if (owner->has_value()) return claimed_by(**owner);
  const auto move = [&](std::vector<std::string> argv) -> absl::Status {
    const absl::StatusOr<hosts::CommandResult> result =
        host_->Run({.argv = std::move(argv), .timeout = kClaimTimeout});
    if (!result.ok()) return absl::UnavailableError(result.status().message());
    if (result->ok()) return absl::OkStatus();
    return absl::UnavailableError(fmt::format("\"{}\" could not be taken away or put back: {}",
                                              paths.claim(), result->stderr_data));
  };
  if (absl::Status status = move({"mv", "-T", paths.claim(), paths.dead_claim()}); !status.ok())
    return status;
  const absl::StatusOr<std::string> taken = host_->ReadFile(paths.dead_claim(), kMaxClaimBytes);
  if (!taken.ok()) return taken.status();
  const std::optional<JobId> late = OwnerIn(*taken);
  if (!late.has_value()) return absl::OkStatus();
  if (absl::Status status = move({"ln", "-T", paths.dead_claim(), paths.claim()}); !status.ok())
    return status;
  return claimed_by(*late);
}

absl::Time SlurmBackend::HistoryBegin(const agents::RunHandle& run) {
  return std::max(run.launch_time, absl::Now() - kLongestMemory) - kClockSlack;
}

absl::StatusOr<std::vector<HistoryRow>> SlurmBackend::HistoryByName(const agents::RunHandle& run,
                                                                    const std::string& name) {
  {
    const MutexLock lock(mutex_);
    if (!keeps_accounting_) return std::vector<HistoryRow>();
  }
  absl::StatusOr<std::vector<HistoryRow>> rows =
      SchedulerOf(run.run_key).HistoryOf(name, HistoryBegin(run));
  if (rows.ok()) std::erase_if(*rows, [](const HistoryRow& row) { return row.WasRefused(); });
  if (rows.status().code() != absl::StatusCode::kFailedPrecondition) return rows;
  const MutexLock lock(mutex_);
  keeps_accounting_ = false;
  return std::vector<HistoryRow>();
}

absl::StatusOr<std::vector<QueueRow>> SlurmBackend::WholeQueue() {
  absl::StatusOr<std::vector<QueueRow>> rows = scheduler_->Queue();
  if (!rows.ok()) return rows;
  DropForeign(&*rows);
  std::set<JobId> named;
  std::vector<QueueRow> unnamed;
  for (const QueueRow& row : *rows) {
    named.insert(row.job_id);
    if (row.unnamed_from.has_value() && !HasEnded(row.state.phase)) unnamed.push_back(row);
  }
  for (QueueRow& row : unnamed) {
    row.state.phase = JobPhase::kUnknown;
    const std::vector<uint32_t> tasks =
        arrays_.TasksFrom(row.name, *std::exchange(row.unnamed_from, std::nullopt));
    for (const uint32_t task : tasks) {
      row.job_id.task = task;
      if (!named.contains(row.job_id)) rows->push_back(row);
    }
  }
  return rows;
}

absl::StatusOr<std::vector<QueueRow>> SlurmBackend::SharedQueue() {
  const MutexLock asking(shared_queue_mutex_);
  absl::Time last_submit;
  {
    const MutexLock lock(mutex_);
    last_submit = last_submit_;
  }
  const absl::Time now = time_.Now();
  if (now - shared_queue_time_ <= kSharedAnswerAge && shared_queue_time_ > last_submit)
    return shared_queue_;
  absl::StatusOr<std::vector<QueueRow>> rows = WholeQueue();
  if (!rows.ok()) return rows;
  shared_queue_time_ = now;
  shared_queue_ = *rows;
  return rows;
}

std::vector<SlurmBackend::JobToEnd> SlurmBackend::StraysOf(const std::string& run_key,
                                                           const JobId& id,
                                                           const std::vector<QueueRow>& rows) {
  std::vector<JobToEnd> strays;
  for (const QueueRow& row : rows) {
    if (row.job_id == id || HasEnded(row.state.phase) || row.state.phase == JobPhase::kUnknown)
      continue;
    strays.push_back({run_key, row.job_id});
  }
  return strays;
}

LookupOutcome SlurmBackend::Lookup(const agents::RunHandle& run) {
  RememberUsers({run});
  if (users_ != nullptr && !users_->Of(run.run_key).has_value()) {
    return CouldNotAsk(absl::UnavailableError(
        "it is not known as which user of the cluster the run may have been submitted: its user of "
        "Muster is nobody there now, or could not be looked up"));
  }
  if (absl::Status status = arrays_.Load(); !status.ok()) return CouldNotAsk(status);
  const std::vector<ArrayPlace> places = arrays_.PlacesOf(run.run_key);
  // A user's jobs are looked for as the user, whom Slurm shows them for certain.
  const absl::StatusOr<std::vector<QueueRow>> queue =
      users_ == nullptr ? SharedQueue() : SchedulerOf(run.run_key).Queue();
  if (!queue.ok()) return CouldNotAsk(queue.status());
  // Comes after the queue: a job that the queue did not show yet cannot have claimed the run and be
  // forgotten already.
  const absl::StatusOr<std::optional<JobId>> owner = ReadOwner(PathsOf(run.run_key));
  std::vector<QueueRow> rows;
  for (const QueueRow& row : *queue) {
    if (RunOf(row.name, row.job_id) == run.run_key) rows.push_back(row);
  }

  // Any job of a run that is to end will do: all of them are ended.
  const bool is_any_good = run.cancel_requested && BestInQueue(rows).has_value();
  if (!owner.ok() && !is_any_good) return CouldNotAsk(owner.status());
  LookupOutcome outcome;
  std::optional<JobId> id = owner.value_or(std::nullopt);
  if (id.has_value()) {
    outcome = MakeLookup(LookupOutcome::Kind::kFound, v1::EVIDENCE_SOURCE_EXIT_RECORD,
                         fmt::format("Slurm job {} has claimed the run", id->ToString()));
  } else if ((id = BestInQueue(rows))) {
    outcome = MakeLookup(LookupOutcome::Kind::kFound, v1::EVIDENCE_SOURCE_SQUEUE,
                         fmt::format("squeue lists job {} with the run's name", id->ToString()));
  } else {
    outcome = LookUpInHistory(run, places, *queue, &id);
    if (outcome.kind != LookupOutcome::Kind::kFound) return outcome;
  }
  outcome.external_id = id->ToString();
  EndStrays(StraysOf(run.run_key, *id, rows), absl::InfiniteFuture());
  return outcome;
}

// Each task of an array that Slurm knows was submitted, also a task that Slurm no longer lists: it
// forgets a task that is canceled while it waits. Observe finds out.
LookupOutcome SlurmBackend::LookUpInHistory(const agents::RunHandle& run,
                                            const std::vector<ArrayPlace>& places,
                                            const std::vector<QueueRow>& queue,
                                            std::optional<JobId>* id) {
  const auto found = [&](v1::EvidenceSource source, const char* who) {
    return MakeLookup(LookupOutcome::Kind::kFound, source,
                      fmt::format("{} lists job {} with the run's name, or others of its array",
                                  who, (*id)->ToString()));
  };
  for (const ArrayPlace& place : places) {
    std::vector<QueueRow> tasks = queue;
    std::erase_if(tasks, [](const QueueRow& row) {
      return row.state.phase == JobPhase::kFailed && row.node_list.empty();
    });
    if (const auto number = NumberOf(place.array, tasks); number.has_value()) {
      *id = JobId{*number, place.task};
      return found(v1::EVIDENCE_SOURCE_SQUEUE, "squeue");
    }
  }
  const absl::StatusOr<std::vector<HistoryRow>> history = HistoryByName(run, run.run_key);
  if (!history.ok()) return CouldNotAsk(history.status());
  *id = BestInHistory(*history);
  if (id->has_value()) return found(v1::EVIDENCE_SOURCE_SACCT, "sacct");
  for (const ArrayPlace& place : places) {
    const absl::StatusOr<std::vector<HistoryRow>> tasks = HistoryByName(run, place.array);
    if (!tasks.ok()) return CouldNotAsk(tasks.status());
    if (const auto number = NumberOf(place.array, *tasks); number.has_value()) {
      *id = JobId{*number, place.task};
      return found(v1::EVIDENCE_SOURCE_SACCT, "sacct");
    }
  }
  const MutexLock lock(mutex_);
  return MakeLookup(
      LookupOutcome::Kind::kAbsent, v1::EVIDENCE_SOURCE_SQUEUE,
      fmt::format("{}, and no job has claimed the run",
                  keeps_accounting_
                      ? "neither squeue nor sacct has a job with the run's name"
                      : "squeue has no job with the run's name, there is no sacct to ask"));
}

}  // namespace muster::slurm
