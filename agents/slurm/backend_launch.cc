// Launching a run exactly once, and finding out whether that has happened.
#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "agents/slurm/backend.h"
#include "agents/slurm/container.h"
#include "agents/slurm/exit_record.h"
#include "agents/slurm/fields.h"
#include "agents/slurm/pool_limits.h"
#include "contract/errors.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

using agent::LaunchOutcome;
using agent::LookupOutcome;

constexpr uint32_t kPrivateDirectory = 0700;
// A claim holds one job id.
constexpr size_t kMaxClaimBytes = 64;
// A claim is written at once, and file servers show it within a minute; one that holds no id for
// longer never will.
constexpr absl::Duration kClaimGrace = absl::Minutes(2);
// How often the same run may be refused in words that no table holds, each time with proof that
// Slurm does not know it, before the refusal is believed.
constexpr int kMaxUnknownRefusals = 3;
// How far back a run can have been launched whose launch the journal has lost.
constexpr absl::Duration kLongestMemory = absl::Hours(24 * 30);
// Clocks of the agent's host and of slurmctld differ by less.
constexpr absl::Duration kClockSlack = absl::Hours(1);

v1::Evidence MakeEvidence(v1::EvidenceSource source, std::string detail) {
  v1::Evidence evidence;
  evidence.set_source(source);
  evidence.set_detail(std::move(detail));
  evidence.mutable_observed_at()->set_seconds(absl::ToUnixSeconds(absl::Now()));
  return evidence;
}

LaunchOutcome RefusedBecause(const absl::Status& status) {
  LaunchOutcome outcome;
  outcome.kind = LaunchOutcome::Kind::kRefused;
  outcome.failure.set_failure_class(v1::FAILURE_CLASS_CONFIG);
  std::string message(ToStd(status.message()));
  if (const auto bad = contract::GetBadRequest(status); bad.has_value()) {
    for (const auto& field : bad->field_violations()) {
      message = fmt::format("{}: {}", field.field(), field.description());
    }
  }
  outcome.failure.set_message("The job cannot be given to Slurm: " + message + ".");
  outcome.failure.set_suggestion("Correct the job and submit it again.");
  outcome.evidence = MakeEvidence(v1::EVIDENCE_SOURCE_AGENT, message);
  return outcome;
}

LaunchOutcome RefusedFor(const v1::Failure& failure) {
  LaunchOutcome outcome;
  outcome.kind = LaunchOutcome::Kind::kRefused;
  outcome.failure = failure;
  outcome.evidence = MakeEvidence(v1::EVIDENCE_SOURCE_SBATCH, failure.message());
  return outcome;
}

LaunchOutcome Unclear(std::string detail) {
  LaunchOutcome outcome;
  outcome.kind = LaunchOutcome::Kind::kUnclear;
  outcome.evidence = MakeEvidence(v1::EVIDENCE_SOURCE_AGENT, std::move(detail));
  return outcome;
}

LookupOutcome MakeLookup(LookupOutcome::Kind kind, v1::EvidenceSource source, std::string detail) {
  LookupOutcome outcome;
  outcome.kind = kind;
  outcome.evidence = MakeEvidence(source, std::move(detail));
  return outcome;
}

LookupOutcome CouldNotAsk(const absl::Status& status) {
  return MakeLookup(LookupOutcome::Kind::kCouldNotAsk, v1::EVIDENCE_SOURCE_AGENT,
                    std::string(ToStd(status.message())));
}

// The best of the jobs with the run's name: one that has not ended, then the lowest id. A
// submission that was refused can leave a failed job that never had nodes; that is none of them.
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
    if (row.WasRefused()) continue;
    if (!best.has_value() || row.job_id < *best) best = row.job_id;
  }
  return best;
}

}  // namespace

LaunchOutcome SlurmBackend::Launch(const v1::Assignment& assignment) {
  const RunPaths paths = PathsOf(assignment.run_key());
  GpuTypes gpu_types;
  std::vector<v1::Pool> pools;
  {
    const std::lock_guard lock(mutex_);
    gpu_types = gpu_types_;
    pools = pools_;
  }
  // Before anything is asked or written: what cannot be submitted, never will be.
  if (const auto submission = MakeSubmission(assignment, paths, gpu_types); !submission.ok())
    return RefusedBecause(submission.status());

  const absl::StatusOr<hosts::FileInfo> before = host_->Stat(paths.script());
  if (before.ok()) {
    agent::RunHandle handle;
    handle.run_key = assignment.run_key();
    handle.launch_time = before->modify_time;
    const LookupOutcome found = Lookup(handle);
    if (found.kind == LookupOutcome::Kind::kCouldNotAsk) return Unclear(found.evidence.detail());
    if (found.kind == LookupOutcome::Kind::kFound) {
      LaunchOutcome outcome;
      outcome.kind = LaunchOutcome::Kind::kLaunched;
      outcome.external_id = found.external_id;
      outcome.evidence = found.evidence;
      return outcome;
    }
    // No job has claimed the run, so a claim that is there is a dead one's, and nobody's.
    if (absl::Status status = host_->RemoveTree(paths.claim()); !status.ok())
      return Unclear(std::string(ToStd(status.message())));
  } else if (before.status().code() != absl::StatusCode::kNotFound) {
    return Unclear(std::string(ToStd(before.status().message())));
  }
  // Limits change: only a run that Slurm does not have is measured by them.
  if (absl::Status status = CheckTimeLimit(assignment.spec(), pools); !status.ok())
    return RefusedBecause(status);
  const absl::StatusOr<ImageCache::Ready> image = PrepareImage(assignment.spec());
  if (image.status().code() == absl::StatusCode::kInvalidArgument)
    return RefusedBecause(image.status());
  if (!image.ok()) return Unclear(std::string(ToStd(image.status().message())));
  if (image->refused.has_value()) return RefusedFor(*image->refused);
  const absl::StatusOr<Submission> submission =
      MakeSubmission(assignment, paths, gpu_types, image->conversion);
  if (!submission.ok()) return RefusedBecause(submission.status());
  if (absl::Status status = WriteRunFiles(assignment, paths, *submission, image->image);
      !status.ok()) {
    if (status.code() == absl::StatusCode::kInvalidArgument) return RefusedBecause(status);
    return Unclear(fmt::format("not submitted, the run's files could not be written: {}",
                               ToStd(status.message())));
  }
  watcher_.SetActive(true);
  return Submit(assignment, *submission);
}

absl::StatusOr<ImageCache::Ready> SlurmBackend::PrepareImage(const v1::JobSpec& spec) {
  if (spec.image().empty()) return ImageCache::Ready();
  const absl::StatusOr<contract::Image> image = contract::ParseImage(spec.image());
  if (!image.ok()) return image.status();
  return images_.Prepare(*image);
}

absl::Status SlurmBackend::WriteRunFiles(const v1::Assignment& assignment, const RunPaths& paths,
                                         const Submission& submission, const std::string& image) {
  absl::StatusOr<std::vector<RunFile>> files = MakeRunFiles(assignment, config_.cluster, paths);
  if (!files.ok()) return files.status();
  if (!image.empty()) {
    const absl::StatusOr<std::vector<std::string>> options =
        ContainerOptions(assignment.spec(), image, paths, config_.container_mounts);
    if (!options.ok()) return options.status();
    files->push_back({paths.specs() + "/container", ContainerFile(image, *options)});
  }
  std::vector<std::string> words = SbatchArguments(submission);
  words.insert(words.begin(), "sbatch");
  for (RunFile& note : MakeRunNotes(assignment, config_.cluster, paths, words, absl::Now()))
    files->push_back(std::move(note));
  if (absl::Status status = host_->MakeManyDirectories(paths.Directories(), kPrivateDirectory);
      !status.ok()) {
    return status;
  }
  // Not synced: a node that finds no files says so, and a launch every few milliseconds matters
  // more.
  std::vector<hosts::NewFile> new_files;
  for (RunFile& file : *files) {
    new_files.push_back(
        {std::move(file.path), std::move(file.content), {.mode = file.mode, .sync = false}});
  }
  return host_->WriteMany(new_files);
}

LaunchOutcome SlurmBackend::Submit(const v1::Assignment& assignment, const Submission& submission) {
  SubmitOutcome submitted = scheduler_->Submit(submission);
  if (submitted.unknown_words) {
    const std::lock_guard lock(mutex_);
    if (++tracks_[assignment.run_key()].unknown_refusals >= kMaxUnknownRefusals) {
      submitted.kind = LaunchOutcome::Kind::kRefused;
      submitted.failure = UnknownRefusal(submitted.words);
    }
  }
  LaunchOutcome outcome;
  outcome.kind = submitted.kind;
  if (submitted.job_id != 0) outcome.external_id = std::to_string(submitted.job_id);
  outcome.failure = submitted.failure;
  outcome.evidence = MakeEvidence(v1::EVIDENCE_SOURCE_SBATCH, submitted.words);
  return outcome;
}

absl::StatusOr<std::optional<JobId>> SlurmBackend::ReadOwner(const RunPaths& paths) {
  const absl::StatusOr<std::string> text = host_->ReadFile(paths.claim(), kMaxClaimBytes);
  if (text.status().code() == absl::StatusCode::kNotFound) return std::nullopt;
  if (!text.ok()) return text.status();
  std::string_view line = *text;
  if (line.ends_with('\n')) line.remove_suffix(1);
  const std::optional<JobId> owner = ParseJobId(line);
  if (owner.has_value()) return owner;
  const absl::StatusOr<hosts::FileInfo> claim = host_->Stat(paths.claim());
  if (claim.ok() && absl::Now() - claim->modify_time > kClaimGrace) return std::nullopt;
  return absl::UnavailableError(
      fmt::format("\"{}\" does not hold a Slurm job id yet", paths.claim()));
}

absl::StatusOr<std::vector<HistoryRow>> SlurmBackend::HistoryByName(const agent::RunHandle& run) {
  {
    const std::lock_guard lock(mutex_);
    if (!keeps_accounting_) return std::vector<HistoryRow>();
  }
  const absl::Time since = std::max(run.launch_time, absl::Now() - kLongestMemory) - kClockSlack;
  absl::StatusOr<std::vector<HistoryRow>> rows = scheduler_->HistoryOf(run.run_key, since);
  if (rows.status().code() != absl::StatusCode::kFailedPrecondition) return rows;
  const std::lock_guard lock(mutex_);
  keeps_accounting_ = false;
  return std::vector<HistoryRow>();
}

LookupOutcome SlurmBackend::Lookup(const agent::RunHandle& run) {
  const absl::StatusOr<std::vector<QueueRow>> queue = scheduler_->Queue(run.run_key);
  if (!queue.ok()) return CouldNotAsk(queue.status());
  // After the queue: a job that the queue did not show yet cannot have claimed the run and be
  // forgotten already.
  const absl::StatusOr<std::optional<JobId>> owner = ReadOwner(PathsOf(run.run_key));
  if (!owner.ok()) return CouldNotAsk(owner.status());

  LookupOutcome outcome;
  std::optional<JobId> id = *owner;
  if (id.has_value()) {
    outcome = MakeLookup(LookupOutcome::Kind::kFound, v1::EVIDENCE_SOURCE_EXIT_RECORD,
                         fmt::format("Slurm job {} has claimed the run", id->ToString()));
  } else if ((id = BestInQueue(*queue))) {
    outcome = MakeLookup(LookupOutcome::Kind::kFound, v1::EVIDENCE_SOURCE_SQUEUE,
                         fmt::format("squeue lists job {} with the run's name", id->ToString()));
  } else {
    const absl::StatusOr<std::vector<HistoryRow>> history = HistoryByName(run);
    if (!history.ok()) return CouldNotAsk(history.status());
    id = BestInHistory(*history);
    if (!id.has_value()) {
      return MakeLookup(
          LookupOutcome::Kind::kAbsent, v1::EVIDENCE_SOURCE_SQUEUE,
          "neither squeue nor sacct has a job with the run's name, and no job has claimed the run");
    }
    outcome = MakeLookup(LookupOutcome::Kind::kFound, v1::EVIDENCE_SOURCE_SACCT,
                         fmt::format("sacct lists job {} with the run's name", id->ToString()));
  }
  outcome.external_id = id->ToString();
  CancelStrays(run.run_key, *id, *queue);
  return outcome;
}

void SlurmBackend::CancelStrays(const std::string& run_key, const JobId& job_id,
                                const std::vector<QueueRow>& rows) {
  for (const QueueRow& row : rows) {
    if (row.job_id == job_id || HasEnded(row.state.phase) || row.state.phase == JobPhase::kUnknown)
      continue;
    {
      const std::lock_guard lock(mutex_);
      if (!tracks_[run_key].strays_canceled.insert(row.job_id).second) continue;
    }
    if (scheduler_->Cancel(row.job_id).ok()) continue;
    const std::lock_guard lock(mutex_);
    tracks_[run_key].strays_canceled.erase(row.job_id);  // asked again at the next look
  }
}

}  // namespace muster::slurm
