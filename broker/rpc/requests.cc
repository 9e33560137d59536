#include "broker/rpc/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "broker/app/arguments.h"
#include "broker/core/fingerprint.h"
#include "contract/errors.h"
#include "contract/text.h"
#include "contract/validate.h"

namespace muster::broker {
namespace {

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
  core::SubmitItem item{.spec = std::make_shared<const v1::JobSpec>(*std::move(spec)),
                        .request_id = request.request_id(),
                        .held = request.held()};
  if (!item.request_id.empty()) item.fingerprint = core::RequestFingerprintOf(request.spec());
  return item;
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

absl::StatusOr<Watch> ToWatch(const v1::WatchJobsRequest& request, absl::Time now) {
  if (absl::Status status = CheckIds(request.job_ids()); !status.ok()) return status;
  if (!request.job_ids().empty() && !request.filter().empty()) {
    return contract::BadField("filter", "does not go together with job_ids; give one of them");
  }
  if (request.until_terminal() && request.job_ids().empty()) {
    return contract::BadField("until_terminal", "needs job_ids; a filter has no last job");
  }
  absl::StatusOr<contract::Filter> filter = contract::ParseFilter(request.filter(), now);
  if (!filter.ok()) return filter.status();
  Watch watch;
  watch.jobs.assign(request.job_ids().begin(), request.job_ids().end());
  std::sort(watch.jobs.begin(), watch.jobs.end());
  watch.jobs.erase(std::unique(watch.jobs.begin(), watch.jobs.end()), watch.jobs.end());
  watch.filter = *std::move(filter);
  if (request.has_beginning()) watch.after = 0;
  if (request.has_after()) watch.after = request.after();
  watch.until_terminal = request.until_terminal();
  return watch;
}

}  // namespace muster::broker
