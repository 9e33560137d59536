// Answers people's questions about the cluster: a preflight, its details, a plan.
#include <array>
#include <future>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "agents/core/job_storage.h"
#include "agents/slurm/backend.h"
#include "agents/slurm/container.h"
#include "agents/slurm/details.h"
#include "agents/slurm/job_id.h"
#include "agents/slurm/plan.h"
#include "agents/slurm/pool_limits.h"
#include "agents/slurm/preflight.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

// The run key in plans, since their job has no number yet.
constexpr char kPlannedRun[] = "plan-1-1";

// Begins a call on a thread of its own. A login node that allows no more threads has it made when
// its answer is asked for.
template <typename Call>
std::future<std::invoke_result_t<Call>> Begin(Call call) {
  try {
    return std::async(std::launch::async, call);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, call);
  }
}

// As whom a job is planned.
struct PlanFor {
  hosts::Host* host;
  Scheduler* scheduler;
  RunPaths paths;
};

}  // namespace

v1::ClusterChecks SlurmBackend::Check() {
  return Preflight(config_, host_.get(), &commands_, scheduler_.get(), users_.get()).Run();
}

absl::StatusOr<v1::ClusterDetails> SlurmBackend::Describe(bool with_jobs) {
  // All are asked at the same time: somebody waits for the answer.
  auto asked_partitions = Begin([this] { return scheduler_->Partitions(); });
  auto asked_queue = Begin([this, with_jobs]() -> absl::StatusOr<std::vector<QueuedJob>> {
    if (!with_jobs) return std::vector<QueuedJob>();
    return scheduler_->WholeQueue();
  });
  absl::StatusOr<std::vector<v1::Node>> nodes = scheduler_->Nodes();
  const absl::StatusOr<std::vector<Partition>> partitions = asked_partitions.get();
  const absl::StatusOr<std::vector<QueuedJob>> queue = asked_queue.get();
  for (const absl::Status& status : {partitions.status(), nodes.status(), queue.status()}) {
    if (!status.ok()) return status;
  }
  v1::ClusterDetails details = MakeDetails(*partitions, *std::move(nodes), *queue, OwnUser());
  details.mutable_observed_at()->set_seconds(absl::ToUnixSeconds(absl::Now()));
  return details;
}

absl::StatusOr<v1::JobPlan> SlurmBackend::Plan(const v1::JobSpec& spec, const std::string& user) {
  agent::v1::Assignment planned;
  planned.set_run_key(kPlannedRun);
  planned.set_user(user);
  *planned.mutable_spec() = spec;
  v1::JobPlan plan;
  agents::CheckList checks;
  PlanFor as{host_.get(), scheduler_.get(), RunPaths(config_.run_dir, kPlannedRun)};
  if (users_ != nullptr) {
    const absl::StatusOr<JobUser> found = users_->Find(user);
    if (absl::IsUnavailable(found.status())) return found.status();
    if (!found.ok()) {
      const v1::Failure failure = JobUsers::WhyNot(found.status());
      checks.Fail(v1::CHECK_CODE_USERS, "user", failure.message(), failure.remedy());
      *plan.mutable_checks() = checks.checks().checks();
      return plan;
    }
    JobUsers::Side& side = users_->SideOf(found->name);
    as = {&side.host, &side.scheduler, RunPaths(users_->RootOf(found->name), kPlannedRun)};
  }
  GpuTypes gpu_types;
  std::vector<v1::Pool> pools;
  {
    const MutexLock lock(mutex_);
    gpu_types = gpu_types_;
    pools = pools_;
  }
  absl::StatusOr<agent::v1::Assignment> complete = Complete(planned, std::set<std::string>());
  if (complete.ok()) complete = Resolve(*complete);
  if (!complete.ok()) {
    if (!absl::IsInvalidArgument(complete.status())) return complete.status();
    checks.Fail(v1::CHECK_CODE_OTHER, "the job", agents::WhatIsWrong(complete.status()),
                "Correct the job.");
    *plan.mutable_checks() = checks.checks().checks();
    return plan;
  }
  const agent::v1::Assignment& assignment = *complete;
  const absl::StatusOr<Submission> submission = MakeSubmission(assignment, as.paths, gpu_types);
  absl::StatusOr<std::string> text =
      submission.ok() ? SubmissionText(assignment, as.paths, *submission) : submission.status();
  if (!text.ok()) {
    checks.Fail(v1::CHECK_CODE_OTHER, "the job", agents::WhatIsWrong(text.status()),
                "Correct the job.");
  } else {
    plan.set_submission(*std::move(text));
    plan.set_shared(BatchScriptText());
    const absl::Status limit = CheckTimeLimit(assignment.spec(), pools);
    if (limit.ok()) {
      checks.Ok(v1::CHECK_CODE_LIMITS, "time limit",
                "within the limits of the partitions that the job may use");
    } else {
      checks.Fail(v1::CHECK_CODE_LIMITS, "time limit", agents::WhatIsWrong(limit),
                  "Correct the job.");
    }
    const absl::Status right =
        users_ == nullptr ? RefuseForbidden(assignment.spec()) : absl::OkStatus();
    if (right.ok()) {
      checks.Ok(v1::CHECK_CODE_POOL, "partition",
                "open to the job's account, QOS and user, as far as is known");
    } else {
      checks.Fail(v1::CHECK_CODE_POOL, "partition", agents::WhatIsWrong(right), "Correct the job.");
    }
    if (auto inputs = agents::PlanInputs(assignment.spec(), as.host); inputs.has_value())
      checks.Add(*std::move(inputs));
    PlanImage(spec, &checks);
    TakeEstimate(as.scheduler->EstimateStart(*submission), &checks, &plan);
  }
  *plan.mutable_checks() = checks.checks().checks();
  return plan;
}

absl::StatusOr<std::string> SlurmBackend::SubmissionText(const agent::v1::Assignment& assignment,
                                                         const RunPaths& paths,
                                                         const Submission& submission) {
  const std::vector<std::string> words = SbatchArguments(submission);
  absl::StatusOr<std::string> text = CommentLine("sbatch", words);
  if (!text.ok()) return text.status();
  ImageCache::Ready from;
  if (!assignment.spec().image().empty()) {
    const absl::StatusOr<contract::Image> image = contract::ParseImage(assignment.spec().image());
    if (!image.ok()) return image.status();
    from.image = images_.NameFor(*image);
    const absl::StatusOr<std::vector<std::string>> options =
        ContainerOptions(assignment, config_.cluster, from.image, paths, config_.container_mounts);
    if (!options.ok()) return options.status();
    const absl::StatusOr<std::string> container = CommentLine("srun", *options);
    if (!container.ok()) return container.status();
    *text += *container;
  }
  const absl::StatusOr<std::string> programs = ProgramsText(assignment.spec());
  if (!programs.ok()) return programs.status();
  // Nobody sees the variables of the submitter's shell.
  absl::StatusOr<std::vector<RunFile>> files = FilesOf(assignment, paths, from, /*shell=*/{});
  if (!files.ok()) return files.status();
  for (RunFile& note : MakeRunNotes(assignment, config_.cluster, paths, words, absl::Now()))
    files->push_back(std::move(note));
  return *text + *programs + FilesText(*files, paths);
}

void SlurmBackend::PlanImage(const v1::JobSpec& spec, agents::CheckList* checks) {
  constexpr char kSubject[] = "image";
  if (spec.image().empty()) return;
  const absl::StatusOr<contract::Image> image = contract::ParseImage(spec.image());
  if (!image.ok())
    return checks->Fail(v1::CHECK_CODE_IMAGES, kSubject, agents::WhatIsWrong(image.status()),
                        "Correct the job.");
  if (const std::optional<v1::Failure> impossible = WhyNoContainers())
    return checks->Fail(v1::CHECK_CODE_IMAGES, kSubject, impossible->message(),
                        impossible->remedy());
  const std::string file = images_.NameFor(*image);
  if (!file.starts_with('/'))
    return checks->Ok(v1::CHECK_CODE_IMAGES, kSubject, "each node pulls it: " + file);
  const absl::Status there = host_->Stat(file).status();
  if (there.ok())
    return checks->Ok(v1::CHECK_CODE_IMAGES, kSubject, fmt::format("\"{}\" is there", file));
  if (!absl::IsNotFound(there)) {
    return checks->Warn(v1::CHECK_CODE_IMAGES, kSubject,
                        fmt::format("it could not be looked at: {}", ToStd(there.message())));
  }
  if (file == spec.image()) {
    return checks->Fail(v1::CHECK_CODE_IMAGES, kSubject,
                        fmt::format("there is no file \"{}\"", file),
                        "Name a squashfs file that is on the cluster, or an image of a registry.");
  }
  checks->Ok(v1::CHECK_CODE_IMAGES, kSubject,
             fmt::format("\"{}\" is not there yet: a Slurm job converts the image before "
                         "the run gets nodes (whether Slurm takes that job is not tried)",
                         file));
}

}  // namespace muster::slurm
