#include "broker/rpc/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "contract/errors.h"
#include "contract/text.h"
#include "contract/validate.h"

namespace muster::broker {
namespace {

// The same error about a field of a larger message: "nodes" becomes "requests[3].spec.nodes".
absl::Status Within(std::string_view prefix, const absl::Status& status) {
  if (const auto bad = contract::GetBadRequest(status)) {
    contract::FieldErrors errors;
    for (const auto& violation : bad->field_violations()) {
      errors.Add(fmt::format("{}{}", prefix, violation.field()), violation.description());
    }
    return errors.ToStatus();
  }
  if (const auto info = contract::GetErrorInfo(status)) {
    std::map<std::string, std::string> metadata(info->metadata().begin(), info->metadata().end());
    if (const auto field = metadata.find("field"); field != metadata.end()) {
      field->second.insert(0, prefix);
    }
    return contract::Error(status.code(), info->reason(), ToStd(status.message()),
                           std::move(metadata));
  }
  return status;
}

absl::StatusOr<core::SubmitItem> ToItem(const v1::SubmitJobRequest& request,
                                        std::string_view prefix) {
  if (!request.has_spec()) {
    return contract::BadField(fmt::format("{}spec", prefix), "is required");
  }
  if (!request.request_id().empty()) {
    absl::Status status = contract::ValidateRequestId(request.request_id());
    if (!status.ok()) return Within(prefix, status);
  }
  absl::StatusOr<v1::JobSpec> spec = contract::NormalizeJobSpec(request.spec());
  if (!spec.ok()) return Within(fmt::format("{}spec.", prefix), spec.status());
  return core::SubmitItem{.spec = std::make_shared<const v1::JobSpec>(*std::move(spec)),
                          .request_id = request.request_id(),
                          .held = request.held()};
}

absl::Status CheckIds(const google::protobuf::RepeatedField<uint64_t>& ids) {
  if (ids.size() > kMaxJobsPerCall) {
    return contract::BadField(
        "job_ids", fmt::format("{} ids; the most in one call is {}", ids.size(), kMaxJobsPerCall));
  }
  for (int i = 0; i < ids.size(); ++i) {
    if (ids[i] == 0) {
      return contract::BadField(fmt::format("job_ids[{}]", i), "0 is no job; numbers begin at 1");
    }
  }
  return absl::OkStatus();
}

// Requests that name jobs and a reason.
template <typename Wish, typename Request>
absl::StatusOr<Wish> ToWish(const Request& request, std::string user) {
  if (request.job_ids().empty()) {
    return contract::BadField("job_ids", "is empty; name at least one job");
  }
  if (absl::Status status = CheckIds(request.job_ids()); !status.ok()) return status;
  if (request.reason().size() > kMaxReasonBytes) {
    return contract::BadField("reason", fmt::format("has {} bytes; the most is {}",
                                                    request.reason().size(), kMaxReasonBytes));
  }
  Wish wish;
  wish.jobs.assign(request.job_ids().begin(), request.job_ids().end());
  wish.reason = request.reason();
  wish.user = std::move(user);
  return wish;
}

}  // namespace

absl::StatusOr<core::Submit> ToSubmit(const v1::SubmitJobRequest& request, std::string user) {
  core::Submit submit;
  absl::StatusOr<core::SubmitItem> item = ToItem(request, "");
  if (!item.ok()) return item.status();
  submit.items.push_back(*std::move(item));
  submit.user = std::move(user);
  submit.validate_only = request.validate_only();
  return submit;
}

absl::StatusOr<core::Submit> ToSubmit(const v1::SubmitJobsRequest& request, std::string user) {
  if (request.requests().empty() || request.requests_size() > kMaxJobsPerCall) {
    return contract::BadField("requests", fmt::format("{} requests; one call takes 1 to {}",
                                                      request.requests_size(), kMaxJobsPerCall));
  }
  core::Submit submit;
  submit.user = std::move(user);
  submit.validate_only = request.requests(0).validate_only();
  for (int i = 0; i < request.requests_size(); ++i) {
    const v1::SubmitJobRequest& one = request.requests(i);
    if (one.validate_only() != submit.validate_only) {
      return contract::BadField(fmt::format("requests[{}].validate_only", i),
                                "differs from requests[0].validate_only; all must say the same");
    }
    absl::StatusOr<core::SubmitItem> item = ToItem(one, fmt::format("requests[{}].", i));
    if (!item.ok()) return item.status();
    submit.items.push_back(*std::move(item));
  }
  return submit;
}

absl::StatusOr<core::Cancel> ToCancel(const v1::CancelJobsRequest& request, std::string user) {
  return ToWish<core::Cancel>(request, std::move(user));
}

absl::StatusOr<core::Hold> ToHold(const v1::HoldJobsRequest& request, std::string user) {
  return ToWish<core::Hold>(request, std::move(user));
}

absl::StatusOr<core::Hold> ToHold(const v1::ReleaseJobsRequest& request, std::string user) {
  absl::StatusOr<core::Hold> release = ToWish<core::Hold>(request, std::move(user));
  if (release.ok()) release->held = false;
  return release;
}

absl::StatusOr<int> ToPageSize(int requested) {
  if (requested < 0) {
    return contract::BadField("page_size", fmt::format("{} is negative; use 1 to {}, or 0 for {}",
                                                       requested, kMaxPageSize, kDefaultPageSize));
  }
  return requested == 0 ? kDefaultPageSize : std::min(requested, kMaxPageSize);
}

absl::StatusOr<Watch> ToWatch(const v1::WatchJobsRequest& request) {
  if (absl::Status status = CheckIds(request.job_ids()); !status.ok()) return status;
  if (!request.job_ids().empty() && !request.filter().empty()) {
    return contract::BadField("filter", "does not go together with job_ids; give one of them");
  }
  if (request.until_terminal() && request.job_ids().empty()) {
    return contract::BadField("until_terminal", "needs job_ids; a filter has no last job");
  }
  if (request.after_sequence() < -1) {
    return contract::BadField(
        "after_sequence", fmt::format("{}; use a sequence, 0 for all or -1 for none of the past",
                                      request.after_sequence()));
  }
  absl::StatusOr<contract::Filter> filter = contract::ParseFilter(request.filter());
  if (!filter.ok()) return filter.status();
  Watch watch;
  watch.jobs.assign(request.job_ids().begin(), request.job_ids().end());
  std::sort(watch.jobs.begin(), watch.jobs.end());
  watch.jobs.erase(std::unique(watch.jobs.begin(), watch.jobs.end()), watch.jobs.end());
  watch.filter = *std::move(filter);
  watch.after_sequence = request.after_sequence();
  watch.until_terminal = request.until_terminal();
  return watch;
}

}  // namespace muster::broker
