// Launches runs, each exactly once: alone, or the tasks of a job array as one array of Slurm's.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "agents/core/job_storage.h"
#include "agents/files/shell_variables.h"
#include "agents/hosts/private_modes.h"
#include "agents/slurm/backend.h"
#include "agents/slurm/container.h"
#include "agents/slurm/fresh_run.h"
#include "agents/slurm/leases.h"
#include "agents/slurm/outcomes.h"
#include "agents/slurm/pool_limits.h"
#include "contract/errors.h"
#include "contract/shell_environment.h"
#include "contract/task_array.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

using agents::LaunchOutcome;
using agents::LookupOutcome;

// Runs whose launches may be under way at once, beside those of whole arrays.
constexpr size_t kMaxLaunches = 100;
// Runs that are launched together although each is a submission of its own. Eight calls of sbatch
// take a second or two.
constexpr size_t kMaxUnlike = 8;
// Bytes of one write, which is one request over SSH.
constexpr size_t kMaxWriteBytes = 8 << 20;

// Returns the job array of which the run may be submitted as a task; nothing if it is a job of its
// own.
std::optional<uint64_t> ArrayOf(const agent::v1::Assignment& assignment) {
  if (!MayBeTask(assignment.spec())) return std::nullopt;
  return contract::ArrayNumber(assignment.job_id(), *contract::FindArrayTask(assignment.spec()));
}

// The tasks of a job array are one call. Each other run is a call of its own, for whose answer all
// that are launched with it wait; together they save requests for files.
bool GoesAlong(const agent::v1::Assignment& first, const agent::v1::Assignment& next,
               size_t before) {
  const std::optional<uint64_t> array = ArrayOf(first);
  return array.has_value() ? ArrayOf(next) == array
                           : !ArrayOf(next).has_value() && before < kMaxUnlike;
}

// Returns the outcome of the runs behind one whose answer did not come, as they would wait as long.
LaunchOutcome NotAsked() {
  return Deferred(
      absl::UnavailableError("not submitted yet: Slurm's answer about another run is unclear"));
}

}  // namespace

agents::Capabilities SlurmBackend::capabilities() {
  agents::Capabilities own = {
      .max_launch_batch = kMaxLaunches,
      .goes_along = GoesAlong,
      .max_end_batch = scheduler_->MaxJobsInCall(),
      .lookup_grace = config_.lookup_grace,
      .output_host = output_host_ != nullptr        ? output_host_.get()
                     : config_.user_on_host.empty() ? nullptr
                                                    : host_.get(),
      .usage_of = [this](const std::vector<agents::RunHandle>& runs) { return UsageOf(runs); }};
  if (CanFence()) {
    own.fence_delay = LeaseFenceDelay();
    own.renew_leases = [this](absl::Duration remaining) { return RenewLeases(remaining); };
  }
  // slurmrestd tells no processes of a job apart.
  if (config_.rest_url.empty()) {
    own.send_signal = [this](const agents::RunHandle& run, const agents::RunSignal& signal) {
      return SendSignal(run, signal);
    };
  }
  return own;
}

std::vector<LaunchOutcome> SlurmBackend::LaunchSettled(const agents::Assignments& assignments) {
  std::vector<LaunchOutcome> outcomes(assignments.size());
  if (absl::Status status = arrays_.Load(); !status.ok()) {
    std::fill(outcomes.begin(), outcomes.end(), Deferred(status));
    return outcomes;
  }
  size_t max_tasks = 0;
  {
    const MutexLock lock(mutex_);
    max_tasks = std::min<size_t>(max_array_size_, contract::kMaxArrayTasks);
  }
  std::vector<std::string> scripts;
  for (const auto& assignment : assignments)
    scripts.push_back(PathsOf(assignment->run_key()).script());
  const std::vector<absl::StatusOr<hosts::FileInfo>> before = host_->StatMany(scripts);
  const absl::StatusOr<std::set<std::string>> known = KnownNodesOf(assignments);
  std::map<std::string, absl::StatusOr<ImageCache::Ready>> images;
  const absl::Time files_deadline = time_.Now() + uploads::kFetchPatience;
  // The groups are in the order of their arrival.
  std::vector<std::vector<Fresh>> groups;
  for (size_t i = 0; i < assignments.size(); ++i) {
    // Settings and limits change, so only a run that Slurm does not have is measured by them.
    if (auto launched = FindLaunched(assignments[i]->run_key(), before[i]); launched.has_value()) {
      outcomes[i] = *std::move(launched);
      continue;
    }
    Fresh fresh;
    fresh.index = i;
    fresh.is_first = !before[i].ok();
    fresh.files_deadline = files_deadline;
    absl::StatusOr<agent::v1::Assignment> complete = Complete(*assignments[i], known);
    if (complete.ok()) complete = Resolve(*complete);
    if (!complete.ok()) {
      const bool is_refused = complete.status().code() == absl::StatusCode::kInvalidArgument;
      outcomes[i] = is_refused ? RefusedBecause(complete.status()) : Deferred(complete.status());
      continue;
    }
    fresh.assignment = std::make_shared<const agent::v1::Assignment>(*std::move(complete));
    if (auto outcome = Prepare(&images, &fresh); outcome.has_value()) {
      outcomes[i] = *std::move(outcome);
      continue;
    }
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& other) {
      return !fresh.likeness.empty() && other.front().likeness == fresh.likeness &&
             other.size() < max_tasks;
    });
    if (group == groups.end()) {
      groups.emplace_back().push_back(std::move(fresh));
    } else {
      group->push_back(std::move(fresh));
    }
  }
  // Each user's sbatch may be silent for a reason of the user's own.
  std::set<const Scheduler*> silent;
  for (std::vector<Fresh>& group : groups) {
    const size_t first = group.front().index;
    const Scheduler* scheduler = &SchedulerOf(assignments[first]->run_key());
    if (silent.contains(scheduler)) {
      for (const Fresh& run : group) outcomes[run.index] = NotAsked();
      continue;
    }
    SubmitAll(std::move(group), &outcomes);
    if (outcomes[first].kind == LaunchOutcome::Kind::kUnclear) silent.insert(scheduler);
  }
  return outcomes;
}

absl::StatusOr<agent::v1::Assignment> SlurmBackend::Resolve(
    const agent::v1::Assignment& assignment) const {
  return agents::OnCluster(assignment, {.cluster = {.cluster = config_.cluster,
                                                    .is_remote = true,
                                                    .roots = config_.storage_roots,
                                                    .relative_to = {}},
                                        .results_root = config_.results_root,
                                        .container_mounts = config_.container_mounts});
}

std::optional<LaunchOutcome> SlurmBackend::PrepareStorage(const agent::v1::Assignment& assignment) {
  hosts::Host* host = HostOf(assignment.run_key());
  absl::Status status = agents::CheckInputs(assignment.spec(), host);
  if (status.ok()) status = agents::MakeResultsDirectory(assignment.spec(), host);
  if (status.ok()) return std::nullopt;
  if (absl::IsInvalidArgument(status)) return RefusedBecause(status);
  return Deferred(absl::UnavailableError(fmt::format(
      "not submitted, the job's data could not be looked at: {}", ToStd(status.message()))));
}

// This is done at each launch anew, because nothing of the run has begun that could have changed
// them.
std::optional<LaunchOutcome> SlurmBackend::LayOutFiles(const agent::v1::Assignment& assignment,
                                                       absl::Time deadline) {
  if (assignment.spec().uploads_size() == 0) return std::nullopt;
  uploads::HostTrees* trees = TreesOf(assignment.run_key());
  if (trees == nullptr) {
    return RefusedBecause(contract::BadField(
        "uploads", "this agent takes no files; submit the job to a cluster that does"));
  }
  const absl::StatusOr<uploads::LocalFiles> files =
      config_.files->Fetch(assignment.spec(), deadline - time_.Now());
  if (!files.ok()) return uploads::NotLaunched(files.status());
  // Runs that are ready are submitted first: a thousand copies may take an hour.
  if (time_.Now() >= deadline) {
    return uploads::NotLaunched(absl::DeadlineExceededError(
        "other runs' files were copied meanwhile; it is its turn next"));
  }
  const absl::Status status =
      trees->LayOut(*files, PathsOf(assignment.run_key()).work(), deadline - time_.Now());
  if (status.ok()) return std::nullopt;
  if (absl::IsUnavailable(status)) return Deferred(NotWritten(status));
  return uploads::NotLaunched(status);
}

std::optional<LaunchOutcome> SlurmBackend::Prepare(
    std::map<std::string, absl::StatusOr<ImageCache::Ready>>* images, Fresh* fresh) {
  const agent::v1::Assignment& assignment = *fresh->assignment;
  const RunPaths paths = PathsOf(assignment.run_key());
  GpuTypes gpu_types;
  std::vector<v1::Pool> pools;
  {
    const MutexLock lock(mutex_);
    gpu_types = gpu_types_;
    pools = pools_;
  }
  // Comes before any question and any file: a run that cannot be submitted never will be.
  if (const auto submission = MakeSubmission(assignment, paths, gpu_types); !submission.ok())
    return RefusedBecause(submission.status());
  if (auto outcome = AwaitLease(assignment)) return outcome;
  if (absl::Status status = CheckTimeLimit(assignment.spec(), pools); !status.ok())
    return RefusedBecause(status);
  // The rights that are known are those of the agent's user.
  if (absl::Status status =
          users_ == nullptr ? RefuseForbidden(assignment.spec()) : absl::OkStatus();
      !status.ok())
    return RefusedBecause(status);
  if (auto outcome = PrepareStorage(assignment); outcome.has_value()) return outcome;
  if (auto outcome = LayOutFiles(assignment, fresh->files_deadline)) return outcome;
  const absl::StatusOr<contract::ShellVariables> shell = uploads::FetchShellVariables(
      assignment.spec(), config_.files, fresh->files_deadline - time_.Now());
  if (!shell.ok()) return uploads::NotLaunched(shell.status());
  // An image that has yet to be converted anew is not the one that another run may have as it is.
  const bool is_refresh = assignment.spec().slurm().container().refresh_image();
  const std::string name = assignment.spec().image() + (is_refresh ? "\n" : "");
  if (!images->contains(name)) images->emplace(name, PrepareImage(assignment.spec()));
  const absl::StatusOr<ImageCache::Ready>& image = images->at(name);
  if (image.status().code() == absl::StatusCode::kInvalidArgument)
    return RefusedBecause(image.status());
  if (!image.ok()) return Deferred(image.status());
  if (image->refused.has_value()) return RefusedFor(*image->refused);
  fresh->conversion = image->conversion;
  fresh->pulled_because = image->pulled_because;
  absl::StatusOr<std::vector<RunFile>> files = FilesOf(assignment, paths, *image, *shell);
  if (!files.ok()) return RefusedBecause(files.status());
  fresh->files = *std::move(files);
  if (const std::optional<uint64_t> array = ArrayOf(assignment)) {
    const TaskArray any{"", ArrayPaths(config_.run_dir, ""), {0}};
    const absl::StatusOr<Submission> alike = MakeSubmission(
        assignment, RunPaths(config_.run_dir, ""), gpu_types, fresh->conversion, &any);
    if (!alike.ok()) return RefusedBecause(alike.status());
    fresh->likeness = {fmt::format("{}", *array)};
    fresh->likeness.insert(fresh->likeness.end(), alike->options.begin(), alike->options.end());
    for (const RunFile& file : fresh->files) {
      if (file.path == paths.script()) fresh->likeness.push_back(file.content);
    }
  }
  return std::nullopt;
}

// `before` is the run's script, if there was a launch before this one.
std::optional<LaunchOutcome> SlurmBackend::FindLaunched(
    const std::string& run_key, const absl::StatusOr<hosts::FileInfo>& before) {
  if (before.status().code() == absl::StatusCode::kNotFound) return std::nullopt;
  if (!before.ok()) return Unclear(before.status());
  agents::RunHandle handle;
  handle.run_key = run_key;
  handle.launch_time = before->modify_time;
  const LookupOutcome found = Lookup(handle);
  if (found.kind == LookupOutcome::Kind::kCouldNotAsk)
    return Unclear(absl::UnavailableError(found.evidence.detail()));
  if (found.kind == LookupOutcome::Kind::kFound) {
    LaunchOutcome outcome;
    outcome.kind = LaunchOutcome::Kind::kLaunched;
    outcome.external_id = found.external_id;
    outcome.evidence = found.evidence;
    return outcome;
  }
  const absl::Status status = TakeDeadClaim(PathsOf(run_key));
  if (!status.ok()) return Unclear(status);
  return std::nullopt;
}

absl::StatusOr<ImageCache::Ready> SlurmBackend::PrepareImage(const v1::JobSpec& spec) {
  if (spec.image().empty()) return ImageCache::Ready();
  const absl::StatusOr<contract::Image> image = contract::ParseImage(spec.image());
  if (!image.ok()) return image.status();
  if (std::optional<v1::Failure> impossible = WhyNoContainers()) {
    ImageCache::Ready ready;
    ready.refused = *std::move(impossible);
    return ready;
  }
  return images_.Prepare(*image, spec.slurm().container().refresh_image());
}

absl::StatusOr<std::vector<RunFile>> SlurmBackend::FilesOf(const agent::v1::Assignment& assignment,
                                                           const RunPaths& paths,
                                                           const ImageCache::Ready& image,
                                                           const contract::ShellVariables& shell) {
  std::set<std::string> taken_limits;
  {
    const MutexLock lock(mutex_);
    taken_limits = taken_limits_;
  }
  absl::StatusOr<std::vector<RunFile>> files = MakeRunFiles(
      assignment, config_.cluster, paths, config_.max_timeout_requeues, shell, taken_limits);
  if (!files.ok() || image.image.empty()) return files;
  const absl::StatusOr<std::vector<std::string>> options =
      ContainerOptions(assignment, config_.cluster, image.image, paths, config_.container_mounts);
  if (!options.ok()) return options.status();
  const ContainerImage from = {image.image, image.is_refresh ? image.conversion : std::nullopt,
                               image.fallback};
  files->push_back({paths.specs() + "/container", ContainerFile(from, *options)});
  return files;
}

absl::Status SlurmBackend::WriteRunFiles(std::vector<Fresh>* runs, const Submission& submission) {
  std::vector<std::string> words = SbatchArguments(submission);
  words.insert(words.begin(), "sbatch");
  std::vector<std::string> directories;
  std::vector<RunFile> files;
  bool are_first = true;
  for (Fresh& run : *runs) {
    are_first = are_first && run.is_first;
    const RunPaths paths = PathsOf(run.assignment->run_key());
    for (std::string& directory : paths.Directories()) directories.push_back(std::move(directory));
    if (users_ != nullptr && directories.size() == paths.Directories().size())
      directories.push_back(RunPaths::EndedDirectory(paths.root()));
    for (RunFile& file : std::exchange(run.files, {})) files.push_back(std::move(file));
    for (RunFile& note :
         MakeRunNotes(*run.assignment, config_.cluster, paths, words, absl::Now())) {
      files.push_back(std::move(note));
    }
  }
  if (absl::Status status = host_->MakeManyDirectories(directories, hosts::kPrivateDirectory);
      !status.ok()) {
    return status;
  }
  // The files are not synced: a node that finds no files says so, and a launch every few
  // milliseconds matters more. They are written in place: nobody reads them before the submission,
  // unless there was one before.
  std::vector<hosts::NewFile> chunk;
  size_t bytes = 0;
  for (RunFile& file : files) {
    if (!chunk.empty() && bytes + file.content.size() > kMaxWriteBytes) {
      if (absl::Status status = host_->WriteMany(chunk); !status.ok()) return status;
      chunk.clear();
      bytes = 0;
    }
    bytes += file.content.size();
    chunk.push_back({std::move(file.path),
                     std::move(file.content),
                     {.mode = file.mode, .sync = false, .in_place = are_first}});
  }
  return host_->WriteMany(chunk);
}

// Returns Slurm's answer; nothing if it was not asked, and the outcomes say why.
std::optional<SubmitOutcome> SlurmBackend::Submit(std::vector<Fresh>* part,
                                                  std::vector<LaunchOutcome>* outcomes) {
  std::vector<Fresh>& runs = *part;
  const auto fail = [&](const absl::Status& status) {
    const bool is_refused = status.code() == absl::StatusCode::kInvalidArgument;
    for (const Fresh& run : runs)
      (*outcomes)[run.index] = is_refused ? RefusedBecause(status) : Deferred(status);
    RemoveScripts(runs);
    return std::nullopt;
  };
  const absl::StatusOr<Submission> submission = SubmissionOf(&runs);
  if (!submission.ok()) return fail(submission.status());
  if (absl::Status status = NotWritten(WriteRunFiles(&runs, *submission)); !status.ok())
    return fail(status);
  WatchRecords(true);
  const std::string& first = runs.front().assignment->run_key();
  SubmitOutcome submitted = SchedulerOf(first).Submit(*submission);
  ExplainStranger(first, &submitted);
  {
    const MutexLock lock(mutex_);
    last_submit_ = time_.Now();
  }
  if (submitted.kind == LaunchOutcome::Kind::kDeferred) RemoveScripts(runs);
  return submitted;
}

// Each of the runs is told what became of the job of all of them.
void SlurmBackend::Answer(const std::vector<Fresh>& runs, const SubmitOutcome& submitted,
                          std::vector<LaunchOutcome>* outcomes) {
  std::vector<LaunchOutcome> refused;
  if (!submitted.unknown_words.empty()) refused = RefuseUnknown(runs, submitted);
  for (size_t task = 0; task < runs.size(); ++task) {
    const Fresh& run = runs[task];
    JobId id{submitted.job_id};
    if (runs.size() > 1) id.task = run.task;
    LaunchOutcome& outcome = (*outcomes)[run.index];
    outcome =
        refused.empty() ? OutcomeOf(*run.assignment, submitted, id) : std::move(refused[task]);
    if (!run.pulled_because.empty()) {
      outcome.evidence.set_detail(
          fmt::format("{}\n{}", outcome.evidence.detail(), run.pulled_because));
    }
  }
}

// Makes the runs' next launch the first again, which need not look for another. A launch whose
// removal fails looks for one, no more.
void SlurmBackend::RemoveScripts(const std::vector<Fresh>& runs) {
  std::vector<std::string> scripts;
  for (const Fresh& run : runs) {
    if (run.is_first) scripts.push_back(PathsOf(run.assignment->run_key()).script());
  }
  host_->RemoveManyTrees(scripts).IgnoreError();
  if (users_ == nullptr) return;
  for (const Fresh& run : runs) {
    if (run.is_first) users_->Forget(run.assignment->run_key(), /*keeps_file=*/false);
  }
}

LaunchOutcome SlurmBackend::OutcomeOf(const agent::v1::Assignment& assignment,
                                      const SubmitOutcome& submitted, const JobId& id) {
  LaunchOutcome outcome;
  outcome.kind = submitted.kind;
  if (id.is_set()) outcome.external_id = id.ToString();
  if (submitted.kind == LaunchOutcome::Kind::kLaunched) {
    const MutexLock lock(mutex_);
    tracks_[assignment.run_key()].live = id;
  }
  outcome.failure = submitted.failure;
  if (submitted.needs_pause) outcome.retry_after = kRetryAfter;
  outcome.evidence = MakeEvidence(v1::EVIDENCE_SOURCE_SBATCH, submitted.words);
  return outcome;
}

// An error that nobody knows may mean that slurmctld has the job all the same. One look-up is for
// all of the runs, because they were one submission. A job that shows up only later finds the claim
// taken.
std::vector<LaunchOutcome> SlurmBackend::RefuseUnknown(const std::vector<Fresh>& runs,
                                                       const SubmitOutcome& submitted) {
  agents::RunHandle first;
  first.run_key = runs.front().assignment->run_key();
  first.launch_time = absl::Now();
  const bool is_absent = Lookup(first).kind == LookupOutcome::Kind::kAbsent;
  std::vector<LaunchOutcome> outcomes;
  for (const Fresh& run : runs) {
    LaunchOutcome& outcome = outcomes.emplace_back();
    outcome.evidence = MakeEvidence(v1::EVIDENCE_SOURCE_SBATCH, submitted.words);
    if (!is_absent || !TakeClaim(run.assignment->run_key()).ok()) continue;
    outcome.kind = LaunchOutcome::Kind::kRefused;
    outcome.failure = UnknownRefusal(submitted.unknown_words);
  }
  return outcomes;
}

}  // namespace muster::slurm
