#include "agents/muster/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agents/core/proto_time.h"
#include "agents/files/job_files.h"
#include "agents/hosts/steady_now.h"
#include "agents/muster/answers.h"
#include "agents/muster/translate.h"
#include "contract/errors.h"
#include "contract/states.h"
#include "contract/text.h"

namespace muster::remote {
namespace {

using agents::FenceOutcome;
using agents::LaunchOutcome;
using agents::LookupOutcome;
using agents::RunHandle;

// A change wakes the agent earlier. This interval covers the changes that the feed leaves out, and
// times without a feed.
constexpr absl::Duration kObserveInterval = absl::Seconds(2);

}  // namespace

RemoteBackend::RemoteBackend(RemoteConfig config, std::unique_ptr<Connection> connection)
    : config_(std::move(config)),
      connection_(std::move(connection)),
      logs_(connection_.get(), [this](const std::string& run_key) { return FindLogs(run_key); }),
      feed_(config_, connection_.get(),
            {.changed =
                 [this](uint64_t job) {
                   if (book_.Mark(job)) Wake();
                 },
             .begun = [this] { book_.MarkAll(); }}) {
  if (config_.files != nullptr) uploads_.emplace(config_.files->cache(), connection_.get());
}

absl::Duration RemoteBackend::ObserveInterval() const { return kObserveInterval; }

void RemoteBackend::SetWaker(std::function<void()> wake) {
  const MutexLock lock(mutex_);
  wake_ = std::move(wake);
}

void RemoteBackend::Wake() {
  std::function<void()> wake;
  {
    const MutexLock lock(mutex_);
    wake = wake_;
  }
  if (wake) wake();
}

agents::Capabilities RemoteBackend::capabilities() {
  return {
      .max_end_batch = kMaxFilterJobs,
      // Each sends its files through two networks.
      .max_launches_with_files = 2,
      .output_host = &logs_,
      .usage_of = [this](const std::vector<RunHandle>& runs) { return UsageOf(runs); },
      .send_signal = [this](const RunHandle& run,
                            const agents::RunSignal& signal) { return SendSignal(run, signal); },
      .judges_ends = true,
  };
}

absl::Status RemoteBackend::Adopt(const std::vector<RunHandle>& runs) {
  for (const RunHandle& run : runs) {
    if (const uint64_t job = JobIdOf(run.external_id); job != 0) book_.Add(run.run_key, job);
  }
  feed_.Start();
  return absl::OkStatus();
}

// ---- launches

std::vector<LaunchOutcome> RemoteBackend::Launch(const agents::Assignments& runs) {
  return agents::OneByOne(runs, [this](const auto& run) { return LaunchOne(*run); });
}

absl::Status RemoteBackend::BringFiles(const v1::JobSpec& spec,
                                       std::optional<LaunchOutcome>* refusal) {
  if (spec.uploads().empty() || !uploads_) return absl::OkStatus();
  const absl::StatusOr<Uploads::Files> files = uploads_->Fetch(spec);
  if (!files.ok()) {
    *refusal = uploads::NotLaunched(files.status());
    return absl::OkStatus();
  }
  return uploads_->Send(*files);
}

LaunchOutcome RemoteBackend::LaunchOne(const agent::v1::Assignment& run) {
  if (const absl::Status good = CheckSpec(run.spec()); !good.ok()) return NotExpressible(good);
  std::optional<LaunchOutcome> refusal;
  const absl::Status brought = BringFiles(run.spec(), &refusal);
  if (refusal) return *std::move(refusal);
  if (!brought.ok()) return NotBrought(brought);
  const absl::StatusOr<v1::SubmitJobResponse> answer =
      connection_->For("SubmitJob").SubmitJob(RequestFor(config_, run));
  if (answer.ok()) {
    book_.Add(run.run_key(), answer->job_id());
    return Launched(answer->job_id(),
                    fmt::format("the remote broker {} job {}",
                                answer->repeated_request() ? "already has it as" : "took it as",
                                answer->job_id()));
  }
  if (!absl::IsAlreadyExists(answer.status())) return NotSubmitted(answer.status());
  // Another spec used the request id: an agent of another version launched the run, or it was
  // fenced.
  const absl::StatusOr<std::optional<v1::Job>> job = Find(run.run_key());
  if (job.ok() && job->has_value())
    return Launched((*job)->id(), fmt::format("the remote broker has it as job {}", (*job)->id()));
  return NotSubmitted(job.ok() ? answer.status() : absl::UnavailableError(job.status().message()));
}

absl::StatusOr<std::optional<v1::Job>> RemoteBackend::Find(const std::string& run_key) {
  absl::StatusOr<std::optional<v1::Job>> job = connection_->FindRun(config_.cluster, run_key);
  if (job.ok() && job->has_value()) book_.Add(run_key, (*job)->id());
  return job;
}

absl::StatusOr<uint64_t> RemoteBackend::FindId(const RunHandle& run) {
  if (const uint64_t job = JobIdOf(run.external_id); job != 0) return job;
  if (const uint64_t job = book_.JobOf(run.run_key); job != 0) return job;
  const absl::StatusOr<std::optional<v1::Job>> job = Find(run.run_key);
  if (!job.ok()) return job.status();
  return job->has_value() ? (*job)->id() : 0;
}

LookupOutcome RemoteBackend::Lookup(const RunHandle& run) {
  LookupOutcome outcome;
  const absl::StatusOr<std::optional<v1::Job>> job = Find(run.run_key);
  if (!job.ok()) {
    outcome.evidence = ByBroker(std::string(ToStd(job.status().message())));
    return outcome;
  }
  outcome.kind = job->has_value() ? LookupOutcome::Kind::kFound : LookupOutcome::Kind::kAbsent;
  if (job->has_value()) outcome.external_id = fmt::format("{}", (*job)->id());
  outcome.evidence =
      ByBroker(job->has_value() ? fmt::format("the remote broker has it as job {}", (*job)->id())
                                : "the remote broker has no job of the run");
  return outcome;
}

// The remote broker takes a request id only once. So a held and canceled job uses up the id, and a
// launch that comes late finds that job.
FenceOutcome RemoteBackend::Fence(const RunHandle& run) {
  using Kind = FenceOutcome::Kind;
  const auto not_yet = [](const absl::Status& error) {
    return FenceOutcome{Kind::kNotYet, ByBroker(std::string(ToStd(error.message())))};
  };
  absl::StatusOr<std::optional<v1::Job>> job = Find(run.run_key);
  if (!job.ok()) return not_yet(job.status());
  if (job->has_value()) return FenceBy(**job);
  if (run.assignment == nullptr)
    return {Kind::kNotYet, ByAgent("the agent does not know the job of the run any more")};
  v1::SubmitJobRequest request = RequestFor(config_, *run.assignment);
  // The files need not exist for that, and a spec without them has the same request id.
  request.mutable_spec()->clear_uploads();
  request.set_held(true);
  const absl::StatusOr<v1::SubmitJobResponse> answer =
      connection_->For("SubmitJob").SubmitJob(request);
  if (!answer.ok()) return not_yet(answer.status());
  book_.Add(run.run_key, answer->job_id());
  if (absl::Status asked = Ask(Wish::kEnd, {answer->job_id()}); !asked.ok()) return not_yet(asked);
  job = Find(run.run_key);
  if (!job.ok()) return not_yet(job.status());
  if (!job->has_value()) return {Kind::kNotYet, ByBroker("the remote broker lacks the job")};
  return FenceBy(**job);
}

// ---- cancels, holds and signals

std::vector<absl::Status> RemoteBackend::End(const std::vector<RunHandle>& runs) {
  return Change(runs, Wish::kEnd);
}

std::vector<absl::Status> RemoteBackend::Hold(const std::vector<RunHandle>& runs, bool held) {
  return Change(runs, held ? Wish::kHold : Wish::kRelease);
}

std::vector<absl::Status> RemoteBackend::Change(const std::vector<RunHandle>& runs, Wish wish) {
  std::vector<absl::Status> answers(runs.size());
  std::vector<uint64_t> ids;
  std::vector<size_t> asked;
  for (size_t i = 0; i < runs.size(); ++i) {
    const absl::StatusOr<uint64_t> id = FindId(runs[i]);
    answers[i] = id.status();
    if (!id.ok() || *id == 0) continue;  // what is not there counts as done
    ids.push_back(*id);
    asked.push_back(i);
  }
  if (ids.empty()) return answers;
  const absl::Status status = Ask(wish, ids);
  for (const size_t i : asked) answers[i] = status;
  return answers;
}

// The change goes by filter, so that jobs for which it is no longer possible stay as they are. A
// job that changes at that moment is left for a repeat.
absl::Status RemoteBackend::Ask(Wish wish, const std::vector<uint64_t>& ids) {
  const auto fill = [&](auto request) {
    request.set_filter(FilterOfJobs(config_.cluster, ids));
    request.set_reason(fmt::format("asked for at cluster {}", config_.cluster));
    return request;
  };
  const auto ignore = [](const auto& /*answer*/) {};
  using client::Client;
  switch (wish) {
    case Wish::kEnd:
      return client::ChangeAll<v1::CancelJobsRequest, v1::CancelJobsResponse>(
          connection_->For("CancelJobs"), &Client::CancelJobs, fill(v1::CancelJobsRequest()),
          ignore);
    case Wish::kHold:
      return client::ChangeAll<v1::HoldJobsRequest, v1::HoldJobsResponse>(
          connection_->For("HoldJobs"), &Client::HoldJobs, fill(v1::HoldJobsRequest()), ignore);
    case Wish::kRelease:
      break;
  }
  return client::ChangeAll<v1::ReleaseJobsRequest, v1::ReleaseJobsResponse>(
      connection_->For("ReleaseJobs"), &Client::ReleaseJobs, fill(v1::ReleaseJobsRequest()),
      ignore);
}

absl::Status RemoteBackend::SendSignal(const RunHandle& run, const agents::RunSignal& signal) {
  const absl::StatusOr<uint64_t> id = FindId(run);
  if (!id.ok()) return absl::UnavailableError(id.status().message());
  if (*id == 0) return absl::FailedPreconditionError("the remote broker has no job of the run");
  v1::SignalJobsRequest request;
  request.add_job_ids(*id);
  request.set_signal(fmt::format("{}", signal.number));
  request.set_target(signal.target);
  const absl::StatusOr<v1::SignalJobsResponse> answer =
      connection_->For("SignalJobs").SignalJobs(request);
  if (!answer.ok()) return absl::UnavailableError(answer.status().message());
  if (answer->signals().empty() || !answer->signals(0).has_error()) return absl::OkStatus();
  const v1::SignalError& error = answer->signals(0).error();
  return absl::Status(static_cast<absl::StatusCode>(error.code()), ToAbsl(error.message()));
}

// ---- what runs leave

agents::RunOutput RemoteBackend::OpenLogs(const RunHandle& run) {
  agents::RunOutput output;
  output.may_have_gpus = agents::MayHaveGpus(run);
  const uint32_t ranks =
      run.assignment == nullptr ? 1 : std::max(1u, run.assignment->spec().nodes());
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    for (const v1::LogStream stream : {v1::LOG_STREAM_STDOUT, v1::LOG_STREAM_STDERR})
      output.logs.push_back({rank, stream, LogName{run.run_key, rank, stream}.Path()});
  }
  return output;
}

absl::StatusOr<LogHost::JobOfRun> RemoteBackend::FindLogs(const std::string& run_key) {
  LogHost::JobOfRun found = {.id = book_.JobOf(run_key)};
  if (found.id == 0) {
    const absl::StatusOr<std::optional<v1::Job>> job = Find(run_key);
    if (!job.ok()) return absl::UnavailableError(job.status().message());
    if (!job->has_value()) return absl::NotFoundError("the remote broker has no job of the run");
    found.id = (*job)->id();
  }
  const RunBook::Seen seen = book_.Look(run_key, hosts::SteadyNow());
  found.has_ended =
      seen.job != nullptr && contract::IsTerminal(seen.job->state()) && !seen.awaits_output;
  return found;
}

std::vector<absl::Status> RemoteBackend::Forget(const std::vector<RunHandle>& runs) {
  for (const RunHandle& run : runs) book_.Forget(run.run_key);
  return std::vector<absl::Status>(runs.size());
}

absl::StatusOr<std::unique_ptr<agents::Backend>> CreateRemoteBackend(const RemoteConfig& config) {
  absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Open(config);
  if (!connection.ok()) return connection.status();
  return std::make_unique<RemoteBackend>(config, *std::move(connection));
}

}  // namespace muster::remote
