#include "broker/app/submit_jobs.h"

#include <fmt/format.h>

#include <utility>

#include "broker/app/arguments.h"
#include "broker/app/limits.h"
#include "broker/app/project_limits.h"
#include "broker/app/rights.h"
#include "broker/app/run_secrets.h"
#include "broker/app/submit_dependents.h"
#include "broker/app/submit_files.h"
#include "broker/app/user_meter.h"
#include "broker/core/fingerprint.h"
#include "contract/dependencies.h"
#include "contract/errors.h"
#include "contract/task_array.h"
#include "contract/text.h"
#include "contract/validate.h"

namespace muster::broker {
namespace {

// Takes the spec out of the request: a copy of it would cost as much as all checks. `place` is the
// place of the request in its call, from 1; 0 if it is alone.
absl::StatusOr<core::SubmitItem> ToItem(v1::SubmitJobRequest* request, std::string_view prefix,
                                        uint32_t place) {
  if (!request->has_spec()) {
    return contract::BadField(fmt::format("{}spec", prefix), "is required");
  }
  core::SubmitItem item;
  item.request_id = request->request_id();
  item.held = request->held();
  if (!item.request_id.empty()) {
    absl::Status status = contract::ValidateRequestId(item.request_id);
    if (!status.ok()) return Within(prefix, status);
    item.fingerprint = core::RequestFingerprintOf(request->spec());  // as it was sent
  }
  absl::StatusOr<v1::JobSpec> spec =
      contract::NormalizeJobSpec(std::move(*request->mutable_spec()));
  if (!spec.ok()) return Within(fmt::format("{}spec.", prefix), spec.status());
  contract::FieldErrors errors;
  contract::CheckRequestPlaces(*spec, place, &errors);
  if (!errors.empty()) return Within(fmt::format("{}spec.", prefix), errors.ToStatus());
  item.spec = std::make_shared<const v1::JobSpec>(*std::move(spec));
  return item;
}

// Returns whether the array that `first` begins is whole: its tasks follow one another.
bool IsWhole(const std::vector<core::SubmitItem>& items, size_t first) {
  const contract::ArrayTask begin = *contract::FindArrayTask(*items[first].spec);
  if (begin.place != 0 || begin.count > items.size() - first) return false;
  for (uint32_t place = 1; place < begin.count; ++place) {
    const auto task = contract::FindArrayTask(*items[first + place].spec);
    const bool is_next = task && task->place == place && task->count == begin.count &&
                         task->min_id == begin.min_id && task->max_id == begin.max_id;
    if (!is_next) return false;
  }
  return true;
}

// The number of an array is told from the place of a task in it, so that a task whose array is not
// whole would name jobs that are not of its array. The core does the same for an array of which
// some tasks are known.
void LeaveBrokenArrays(std::vector<core::SubmitItem>* items) {
  for (size_t i = 0; i < items->size(); ++i) {
    const auto task = contract::FindArrayTask(*(*items)[i].spec);
    if (!task) continue;
    if (IsWhole(*items, i)) {
      i += task->count - 1;
      continue;
    }
    (*items)[i].spec = contract::WithoutArray(*(*items)[i].spec);
  }
}

// Checks the projects of all jobs that come in.
absl::Status CheckProjects(const Principal& principal, const Services& services,
                           const store::Scope& scope, const core::Submit& submit, bool is_list) {
  const auto projects = ProjectsOf(services);
  for (size_t i = 0; i < submit.items.size(); ++i) {
    const std::string prefix = is_list ? fmt::format("requests[{}].spec.", i) : "spec.";
    absl::Status status = CheckProject(*projects, scope, principal, *submit.items[i].spec, prefix);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<core::Submit> ToSubmit(const Principal& principal, const Services& services,
                                      v1::SubmitJobRequest request) {
  const absl::StatusOr<store::Scope> scope = Authorize(principal, UseCase::kSubmitJobs);
  if (!scope.ok()) return scope.status();
  core::Submit submit;
  absl::StatusOr<core::SubmitItem> item = ToItem(&request, "", /*place=*/0);
  if (!item.ok()) return item.status();
  submit.items.push_back(*std::move(item));
  submit.user = principal.user;
  submit.is_bounded = HasBounds(principal);
  submit.validate_only = request.validate_only();
  absl::Status status = CheckProjects(principal, services, *scope, submit, /*is_list=*/false);
  if (!status.ok()) return status;
  return submit;
}

namespace {

// All requests say validate_only, or none.
absl::StatusOr<core::Submit> ToSubmit(const Principal& principal, const Services& services,
                                      v1::SubmitJobsRequest request) {
  const absl::StatusOr<store::Scope> scope = Authorize(principal, UseCase::kSubmitJobs);
  if (!scope.ok()) return scope.status();
  if (request.requests().empty() || request.requests_size() > kMaxSubmitsPerCall) {
    return contract::BadField("requests", fmt::format("{} requests; one call takes 1 to {}",
                                                      request.requests_size(), kMaxSubmitsPerCall));
  }
  core::Submit submit;
  submit.user = principal.user;
  submit.is_bounded = HasBounds(principal);
  submit.validate_only = request.requests(0).validate_only();
  for (int i = 0; i < request.requests_size(); ++i) {
    v1::SubmitJobRequest& one = *request.mutable_requests(i);
    if (one.validate_only() != submit.validate_only) {
      return contract::BadField(fmt::format("requests[{}].validate_only", i),
                                "differs from requests[0].validate_only; all must say the same");
    }
    absl::StatusOr<core::SubmitItem> item =
        ToItem(&one, fmt::format("requests[{}].", i), static_cast<uint32_t>(i) + 1);
    if (!item.ok()) return item.status();
    submit.items.push_back(*std::move(item));
  }
  absl::Status status = CheckProjects(principal, services, *scope, submit, /*is_list=*/true);
  if (!status.ok()) return status;
  return submit;
}

}  // namespace

void SubmitJob(const Principal& principal, const Services& services, v1::SubmitJobRequest request,
               SubmitJobDone done) {
  absl::StatusOr<core::Submit> submit = ToSubmit(principal, services, std::move(request));
  if (!submit.ok()) return done(submit.status());
  if (absl::Status status = CheckJobSecrets(principal, services, *submit); !status.ok())
    return done(status);
  LeaveBrokenArrays(&submit->items);
  SubmitWithDependencies(
      principal, services, *std::move(submit),
      [done = std::move(done)](absl::StatusOr<v1::SubmitJobsResponse> submitted) {
        if (!submitted.ok()) return done(submitted.status());
        done(std::move(*submitted->mutable_responses(0)));
      });
}

void SubmitJobs(const Principal& principal, const Services& services, v1::SubmitJobsRequest request,
                SubmitDone done) {
  absl::StatusOr<core::Submit> submit = ToSubmit(principal, services, std::move(request));
  if (!submit.ok()) return done(submit.status());
  if (absl::Status status = CheckJobSecrets(principal, services, *submit); !status.ok())
    return done(status);
  LeaveBrokenArrays(&submit->items);
  SubmitWithDependencies(principal, services, *std::move(submit), std::move(done));
}

}  // namespace muster::broker
