#include "broker/app/rerun_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "broker/app/arguments.h"
#include "broker/app/choose_jobs.h"
#include "broker/app/limits.h"
#include "broker/app/project_limits.h"
#include "broker/app/rights.h"
#include "broker/app/run_secrets.h"
#include "broker/app/submit_dependents.h"
#include "broker/app/submit_files.h"
#include "broker/app/user_meter.h"
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

// The specs of one call have at most this many bytes together, as many as one SubmitJobs may have.
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

// The size of the jobs of one call together.
class Load {
 public:
  // Returns what one call has too much of with this job; empty if nothing.
  std::string Add(const v1::JobSpec& spec) {
    bytes_ += spec.ByteSizeLong();
    for (const v1::Upload& upload : spec.uploads()) trees_.insert(upload.tree_sha256());
    if (bytes_ > kMaxSpecBytes) {
      return fmt::format("their specs have more than {} bytes", kMaxSpecBytes);
    }
    if (trees_.size() > kMaxTreesPerSubmit) {
      return fmt::format("their uploads name more than {} different trees", kMaxTreesPerSubmit);
    }
    return "";
  }

 private:
  size_t bytes_ = 0;
  absl::flat_hash_set<std::string> trees_;
};

class Rerunning : public std::enable_shared_from_this<Rerunning> {
 public:
  Rerunning(const Principal& principal, const Services& services, store::Scope scope,
            v1::RerunJobsRequest request, RerunDone done)
      : principal_(principal),
        services_(services),
        scope_(std::move(scope)),
        request_(std::move(request)),
        done_(std::move(done)) {}

  // The core knows a repeat without a look at the jobs, whatever has become of them since and
  // however busy those are who count jobs and look at files. A request with a request_id therefore
  // asks the core before anything else; the first one then passes it a second time, with what it
  // submits. The question changes nothing, so that nothing is written for it.
  void Begin() {
    if (request_.request_id().empty()) return Choose();
    core::Submit question;
    question.rerun = Identity();
    services_.engine->Submit(
        std::move(question),
        [self = shared_from_this()](const absl::StatusOr<v1::SubmitJobsResponse>& known) {
          if (!known.ok()) return self->done_(known.status());
          if (known->responses().empty()) return self->Choose();
          self->first_ = known->responses(0).job_id();
          self->Later(&Rerunning::AnswerRepeat);
        });
  }

 private:
  bool IsTrialByFilter() const { return request_.validate_only() && !request_.filter().empty(); }
  core::RerunRequest Identity() const { return {request_.request_id(), FingerprintOf(request_)}; }

  // Runs the step on the readers. If it is refused there, nothing was submitted by this call: the
  // step makes the submit, or looks for what an earlier call has submitted, which a repeat of the
  // request finds.
  void Later(void (Rerunning::*step)()) { On(services_.readers, step); }

  void On(Readers* threads, void (Rerunning::*step)()) {
    const bool is_taken = threads->PostCall([self = shared_from_this(), step] { (*self.*step)(); });
    if (!is_taken) done_(threads->Refusal());
  }

  // A trial says how many jobs the filter takes, also if they are too many for one call.
  void Choose() {
    if (IsTrialByFilter()) return On(services_.counters, &Rerunning::Count);
    Later(&Rerunning::Submit);
  }

  void Count() {
    auto filter = EndedJobs();
    if (!filter.ok()) return done_(filter.status());
    const auto counts = services_.store->CountJobs(
        scope_, {.filter = *std::move(filter), .limit = kMaxCountedJobs});
    if (!counts.ok()) return done_(counts.status());
    response_.set_matched_count(static_cast<uint32_t>(counts->total));
    Later(&Rerunning::Submit);
  }

  void AnswerRepeat() {
    const auto jobs = services_.store->GetJobsOfRequest(scope_, first_, request_.request_id());
    if (!jobs.ok()) return done_(jobs.status());
    v1::RerunJobsResponse response;
    for (const v1::Job& job : *jobs) Add(job.rerun_of(), job.id(), &response);
    response.set_matched_count(static_cast<uint32_t>(jobs->size()));
    done_(std::move(response));
  }

  static void Add(uint64_t source, uint64_t job, v1::RerunJobsResponse* response) {
    v1::RerunJob& added = *response->add_jobs();
    added.set_source_job_id(source);
    added.set_job_id(job);
  }

  // Returns the request's filter, for the jobs that can run again.
  absl::StatusOr<contract::Filter> EndedJobs() const {
    auto filter = contract::ParseFilter(request_.filter(), services_.now());
    if (!filter.ok()) return filter.status();
    const contract::Filter has_ended =
        contract::InStates({v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_FAILED, v1::JOB_STATE_CANCELED});
    return contract::And(*std::move(filter), has_ended);
  }

  absl::Status FindSources() {
    std::vector<v1::Job> jobs;
    if (request_.filter().empty()) {
      auto named = services_.store->GetJobs(
          scope_, absl::MakeConstSpan(request_.job_ids().data(), request_.job_ids().size()));
      if (!named.ok()) return named.status();
      jobs = *std::move(named);
    } else {
      auto filter = EndedJobs();
      if (!filter.ok()) return filter.status();
      ChosenPages pages(services_.store, scope_, *std::move(filter));
      auto chosen = pages.Next(kMaxJobsPerCall + 1);
      if (!chosen.ok()) return chosen.status();
      jobs = *std::move(chosen);
    }
    more_ = jobs.size() > static_cast<size_t>(kMaxJobsPerCall);
    if (more_ && !request_.validate_only()) {
      return TooMany(
          fmt::format("the filter takes more than {} jobs that have ended", kMaxJobsPerCall));
    }
    if (more_) jobs.resize(kMaxJobsPerCall);
    for (const v1::Job& job : jobs) {
      if (!contract::IsTerminal(job.state())) return NotEnded(job);
      sources_.push_back(job.id());
    }
    return absl::OkStatus();
  }

  // Makes the submit of the next sources: all of them, or in a trial as many as one call may have.
  absl::StatusOr<core::Submit> MakeSubmit() {
    core::Submit submit;
    Load load;
    const auto projects = ProjectsOf(services_);
    for (; tried_ < sources_.size(); ++tried_) {
      const uint64_t source = sources_[tried_];
      auto stored = services_.store->GetSpecs(scope_, {source});
      if (!stored.ok()) return stored.status();
      v1::JobSpec& spec = stored->front().spec;
      if (const std::string much = load.Add(spec); !much.empty()) {
        more_ = IsTrialByFilter() && !submit.items.empty();
        if (more_) break;
        return TooMany(much);
      }
      // Fields of former releases, which that release honoured and which mean nothing any more.
      spec.DiscardUnknownFields();
      contract::LeaveArray(&spec);
      auto normal = contract::NormalizeJobSpec(std::move(spec));
      if (!normal.ok()) return Within(fmt::format("jobs[{}].spec.", source), normal.status());
      absl::Status allowed = CheckProject(*projects, scope_, principal_, *normal,
                                          fmt::format("jobs[{}].spec.", source));
      if (!allowed.ok()) return allowed;
      DependOnNewOnes(&*normal);
      core::SubmitItem& item = submit.items.emplace_back();
      item.spec = std::make_shared<const v1::JobSpec>(*std::move(normal));
      item.held = request_.held();
      item.rerun_of = source;
    }
    submit.user = principal_.user;
    submit.is_bounded = HasBounds(principal_);
    submit.validate_only = request_.validate_only();
    if (!request_.request_id().empty()) submit.rerun = Identity();
    return submit;
  }

  // A job that this one depended on, and that runs again before it in the same submit, counts as
  // its new job.
  void DependOnNewOnes(v1::JobSpec* spec) const {
    const auto first = sources_.begin() + static_cast<ptrdiff_t>(first_tried_);
    const auto end = sources_.begin() + static_cast<ptrdiff_t>(tried_);
    for (v1::JobDependency& one : *spec->mutable_depends_on()) {
      const auto again = std::find(first, end, one.job_id());
      if (again == end) continue;
      one.clear_job_id();
      one.set_request(static_cast<uint32_t>(again - first) + 1);
    }
  }

  // Runs on a thread that may read the store.
  void Submit() {
    if (absl::Status status = FindSources(); !status.ok()) return done_(status);
    // Jobs may have ended, or been deleted, since they were counted.
    response_.set_matched_count(
        std::max(response_.matched_count(), static_cast<uint32_t>(sources_.size())));
    if (sources_.empty()) return done_(response_);
    SubmitNext();
  }

  void SubmitNext() {
    first_tried_ = tried_;
    absl::StatusOr<core::Submit> submit = MakeSubmit();
    if (!submit.ok()) return done_(submit.status());
    if (absl::Status status = CheckJobSecrets(principal_, services_, *submit); !status.ok())
      return done_(WithSource(status));
    SubmitWithDependencies(
        principal_, services_, *std::move(submit),
        [self = shared_from_this()](const absl::StatusOr<v1::SubmitJobsResponse>& in) {
          self->Answer(in);
        });
  }

  void Answer(const absl::StatusOr<v1::SubmitJobsResponse>& submitted) {
    if (!submitted.ok()) return done_(WithSource(submitted.status()));
    // Somebody was faster with the same request: after the question, and before this submit.
    if (submitted->responses(0).repeated_request()) {
      first_ = submitted->responses(0).job_id();
      return Later(&Rerunning::AnswerRepeat);
    }
    for (size_t i = first_tried_; i < tried_; ++i) {
      Add(sources_[i], submitted->responses(static_cast<int>(i - first_tried_)).job_id(),
          &response_);
    }
    if (tried_ < sources_.size()) return Later(&Rerunning::SubmitNext);
    response_.set_more(more_);
    done_(std::move(response_));
  }

  // Returns an error about one of the specs, with the job that has it.
  absl::Status WithSource(const absl::Status& status) const {
    const auto info = contract::GetErrorInfo(status);
    if (!info) return status;
    std::map<std::string, std::string> metadata(info->metadata().begin(), info->metadata().end());
    const auto request = metadata.find("request");
    const size_t index =
        request == metadata.end() ? 0 : contract::ParseNumber<size_t>(request->second).value_or(0);
    if (request == metadata.end() && tried_ - first_tried_ > 1) return status;
    if (first_tried_ + index >= tried_) return status;
    const uint64_t source = sources_[first_tried_ + index];
    metadata.erase("request");
    metadata["job_id"] = fmt::format("{}", source);
    absl::Status sourced = contract::InOtherWords(
        status, fmt::format("job {} cannot run again: {}", source, ToStd(status.message())));
    contract::SetMetadata(std::move(metadata), &sourced);
    return sourced;
  }

  const Principal principal_;
  const Services services_;
  const store::Scope scope_;
  const v1::RerunJobsRequest request_;
  const RerunDone done_;
  std::vector<uint64_t> sources_;
  // The sources from the one to before the other are being submitted.
  size_t first_tried_ = 0;
  size_t tried_ = 0;
  v1::RerunJobsResponse response_;
  bool more_ = false;   // a trial's filter takes more than one call can run again
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
