#include "broker/app/rerun_jobs.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "broker/app/arguments.h"
#include "broker/app/choose_jobs.h"
#include "broker/app/limits.h"
#include "broker/app/rights.h"
#include "broker/app/submit_files.h"
#include "broker/core/fingerprint.h"
#include "broker/engine/engine.h"
#include "broker/store/store.h"
#include "contract/errors.h"
#include "contract/parts.h"
#include "contract/states.h"
#include "contract/task_array.h"
#include "contract/text.h"
#include "contract/validate.h"

namespace muster::broker {
namespace {

// Makes a task of an array the only task of an array of its own, under the id that it had: the
// numbers around the new job's are those of other jobs. sbatch --array=3 makes the same of task 3.
void LeaveArray(v1::JobSpec* spec) {
  const std::optional<contract::ArrayTask> task = contract::FindArrayTask(*spec);
  if (!task) return;
  contract::SetArrayTask({.id = task->id, .min_id = task->id, .max_id = task->id}, spec);
}

// Bytes of all specs of one call together; as much as one SubmitJobs may have.
constexpr size_t kMaxSpecBytes = 16 << 20;

absl::Status CheckRequest(const v1::RerunJobsRequest& request) {
  if (absl::Status status = CheckChoice(request.job_ids(), request.filter()); !status.ok()) {
    return status;
  }
  absl::flat_hash_set<uint64_t> seen;
  for (int i = 0; i < request.job_ids_size(); ++i) {
    if (seen.insert(request.job_ids(i)).second) continue;
    return contract::BadField(
        fmt::format("job_ids[{}]", i),
        fmt::format("{} is there twice; name each job once", request.job_ids(i)));
  }
  if (request.request_id().empty()) return absl::OkStatus();
  return contract::ValidateRequestId(request.request_id());
}

core::Fingerprint FingerprintOf(const v1::RerunJobsRequest& request) {
  std::string text = fmt::format("{} {}", request.held(), request.filter());
  for (const uint64_t id : request.job_ids()) text += fmt::format(" {}", id);
  return core::RequestKeyOf("", text).low;
}

absl::Status NotEnded(const v1::Job& job) {
  return contract::Error(
      absl::StatusCode::kFailedPrecondition, "NOT_ENDED",
      fmt::format("job {} is {}; only jobs that have ended run again, nothing was submitted",
                  job.id(), contract::Name(job.state())),
      {{"job_id", fmt::format("{}", job.id())}});
}

absl::Status TooMany(std::string_view what) {
  return contract::Error(absl::StatusCode::kFailedPrecondition, "TOO_MANY_JOBS",
                         fmt::format("{}; run them again in several calls, by number or with a "
                                     "narrower filter; nothing was submitted",
                                     what));
}

class Rerunning : public std::enable_shared_from_this<Rerunning> {
 public:
  Rerunning(const Principal& principal, const Services& services, store::Scope scope,
            v1::RerunJobsRequest request, RerunDone done)
      : principal_(principal),
        services_(services),
        scope_(std::move(scope)),
        request_(std::move(request)),
        done_(std::move(done)) {}

  // A repeat is answered whatever has become of the jobs since.
  void Begin() {
    if (request_.request_id().empty()) return Later(&Rerunning::Submit);
    core::Submit question;
    question.rerun = Identity();
    services_.engine->Submit(
        std::move(question),
        [self = shared_from_this()](const absl::StatusOr<v1::SubmitJobsResponse>& known) {
          if (!known.ok()) return self->done_(known.status());
          if (known->responses().empty()) return self->Later(&Rerunning::Submit);
          self->first_ = known->responses(0).job_id();
          self->Later(&Rerunning::AnswerRepeat);
        });
  }

 private:
  core::RerunRequest Identity() const { return {request_.request_id(), FingerprintOf(request_)}; }

  // If it is refused, nothing was submitted by this call: the step makes the submit, or looks for
  // what an earlier call has submitted, which a repeat of the request finds.
  void Later(void (Rerunning::*step)()) {
    const bool is_taken =
        services_.readers->PostCall([self = shared_from_this(), step] { (*self.*step)(); });
    if (!is_taken) done_(ReadersBusy());
  }

  void AnswerRepeat() {
    const auto jobs = services_.store->GetJobsOfRequest(scope_, first_, request_.request_id());
    if (!jobs.ok()) return done_(jobs.status());
    v1::RerunJobsResponse response;
    for (const v1::Job& job : *jobs) Add(job.rerun_of(), job.id(), &response);
    done_(std::move(response));
  }

  static void Add(uint64_t source, uint64_t job, v1::RerunJobsResponse* response) {
    v1::RerunJob& added = *response->add_jobs();
    added.set_source_job_id(source);
    added.set_job_id(job);
  }

  absl::Status FindSources() {
    std::vector<v1::Job> jobs;
    if (request_.filter().empty()) {
      auto named = services_.store->GetJobs(
          scope_, absl::MakeConstSpan(request_.job_ids().data(), request_.job_ids().size()));
      if (!named.ok()) return named.status();
      jobs = *std::move(named);
    } else {
      auto filter = contract::ParseFilter(request_.filter(), services_.now());
      if (!filter.ok()) return filter.status();
      const contract::Filter has_ended = contract::InStates(
          {v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_FAILED, v1::JOB_STATE_CANCELED});
      ChosenPages pages(services_.store, scope_, contract::And(*std::move(filter), has_ended));
      auto chosen = pages.Next(kMaxJobsPerCall + 1);
      if (!chosen.ok()) return chosen.status();
      jobs = *std::move(chosen);
    }
    if (jobs.size() > static_cast<size_t>(kMaxJobsPerCall)) {
      return TooMany(
          fmt::format("the filter takes more than {} jobs that have ended", kMaxJobsPerCall));
    }
    for (const v1::Job& job : jobs) {
      if (!contract::IsTerminal(job.state())) return NotEnded(job);
      sources_.push_back(job.id());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<core::Submit> MakeSubmit() const {
    core::Submit submit;
    size_t bytes = 0;
    for (const uint64_t source : sources_) {
      auto stored = services_.store->GetSpecs(scope_, {source});
      if (!stored.ok()) return stored.status();
      v1::JobSpec& spec = stored->front().spec;
      bytes += spec.ByteSizeLong();
      if (bytes > kMaxSpecBytes) {
        return TooMany(fmt::format("their specs have more than {} bytes", kMaxSpecBytes));
      }
      // Fields of former releases, which that release honoured and which mean nothing any more.
      spec.DiscardUnknownFields();
      LeaveArray(&spec);
      auto normal = contract::NormalizeJobSpec(std::move(spec));
      if (!normal.ok()) return Within(fmt::format("jobs[{}].spec.", source), normal.status());
      core::SubmitItem& item = submit.items.emplace_back();
      item.spec = std::make_shared<const v1::JobSpec>(*std::move(normal));
      item.held = request_.held();
      item.rerun_of = source;
    }
    submit.user = principal_.user;
    submit.validate_only = request_.validate_only();
    if (!request_.request_id().empty()) submit.rerun = Identity();
    return submit;
  }

  // On a thread that may read the store.
  void Submit() {
    if (absl::Status status = FindSources(); !status.ok()) return done_(status);
    if (sources_.empty()) return done_(v1::RerunJobsResponse());
    absl::StatusOr<core::Submit> submit = MakeSubmit();
    if (!submit.ok()) return done_(submit.status());
    SubmitWithFiles(services_, *std::move(submit),
                    [self = shared_from_this()](const absl::StatusOr<v1::SubmitJobsResponse>& in) {
                      self->Answer(in);
                    });
  }

  void Answer(const absl::StatusOr<v1::SubmitJobsResponse>& submitted) {
    if (!submitted.ok()) return done_(WithSource(submitted.status()));
    // Somebody was faster with the same request.
    if (submitted->responses(0).repeated_request()) {
      first_ = submitted->responses(0).job_id();
      return Later(&Rerunning::AnswerRepeat);
    }
    v1::RerunJobsResponse response;
    for (size_t i = 0; i < sources_.size(); ++i) {
      Add(sources_[i], submitted->responses(static_cast<int>(i)).job_id(), &response);
    }
    done_(std::move(response));
  }

  // An error about one of the specs, with the job that has it.
  absl::Status WithSource(const absl::Status& status) const {
    const auto info = contract::GetErrorInfo(status);
    if (!info) return status;
    std::map<std::string, std::string> metadata(info->metadata().begin(), info->metadata().end());
    const auto request = metadata.find("request");
    const size_t index =
        request == metadata.end() ? 0 : contract::ParseNumber<size_t>(request->second).value_or(0);
    if (request == metadata.end() && sources_.size() > 1) return status;
    if (index >= sources_.size()) return status;
    const uint64_t source = sources_[index];
    std::string message(ToStd(status.message()));
    const std::string prefix = fmt::format("requests[{}]: ", index);
    if (message.starts_with(prefix)) message.erase(0, prefix.size());
    metadata.erase("request");
    metadata["job_id"] = fmt::format("{}", source);
    return contract::Error(status.code(), info->reason(),
                           fmt::format("job {} cannot run again: {}", source, message),
                           std::move(metadata));
  }

  const Principal principal_;
  const Services services_;
  const store::Scope scope_;
  const v1::RerunJobsRequest request_;
  const RerunDone done_;
  std::vector<uint64_t> sources_;
  uint64_t first_ = 0;  // new job of a repeat
};

}  // namespace

void RerunJobs(const Principal& principal, const Services& services, v1::RerunJobsRequest request,
               RerunDone done) {
  absl::StatusOr<store::Scope> scope = Authorize(principal, UseCase::kSubmitJobs);
  if (!scope.ok()) return done(scope.status());
  if (absl::Status status = CheckRequest(request); !status.ok()) return done(status);
  std::make_shared<Rerunning>(principal, services, *std::move(scope), std::move(request),
                              std::move(done))
      ->Begin();
}

}  // namespace muster::broker
