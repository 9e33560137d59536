#include "broker/app/count_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "broker/app/limits.h"
#include "broker/app/rights.h"
#include "broker/store/store.h"
#include "contract/errors.h"

namespace muster::broker {
namespace {

absl::Status CheckGroups(const v1::CountJobsRequest& request) {
  bool has_label = false;
  for (int i = 0; i < request.group_by_size(); ++i) {
    const v1::JobGrouping grouping = request.group_by(i);
    const std::string field = fmt::format("group_by[{}]", i);
    if (!v1::JobGrouping_IsValid(grouping) || grouping == v1::JOB_GROUPING_UNSPECIFIED) {
      return contract::BadField(field, fmt::format("{} is no grouping; use state, cluster, label, "
                                                   "user or project",
                                                   static_cast<int>(grouping)));
    }
    const auto begin = request.group_by().begin();
    if (std::find(begin, begin + i, grouping) != begin + i) {
      return contract::BadField(field, "is there twice; name each grouping once");
    }
    has_label = has_label || grouping == v1::JOB_GROUPING_LABEL;
  }
  if (has_label && request.label().empty()) {
    return contract::BadField("label", "is empty; give the key of the label to group by");
  }
  if (!has_label && !request.label().empty()) {
    return contract::BadField("label", "is for JOB_GROUPING_LABEL; add that to group_by");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::CountJobsResponse> CountJobs(const Principal& principal,
                                                const Services& services,
                                                const v1::CountJobsRequest& request) {
  const absl::StatusOr<store::Scope> scope = Authorize(principal, UseCase::kReadJobs);
  if (!scope.ok()) return scope.status();
  if (absl::Status status = CheckGroups(request); !status.ok()) return status;
  absl::StatusOr<contract::Filter> filter = contract::ParseFilter(request.filter(), services.now());
  if (!filter.ok()) return filter.status();
  store::CountQuery query{.filter = *std::move(filter), .label = request.label()};
  for (const int grouping : request.group_by()) {
    query.group_by.push_back(static_cast<v1::JobGrouping>(grouping));
  }
  query.limit = kMaxCountedJobs;
  absl::StatusOr<store::JobCounts> counts = services.store->CountJobs(*scope, query);
  if (!counts.ok()) return counts.status();
  if (counts->is_over) {
    return contract::Error(absl::StatusCode::kResourceExhausted, "TOO_MANY_JOBS",
                           fmt::format("the filter takes more than {} jobs; narrow it, by a time "
                                       "for example: create_time > -7d",
                                       kMaxCountedJobs),
                           {{"field", "filter"}});
  }
  v1::CountJobsResponse response;
  response.set_total(counts->total);
  for (v1::JobCount& count : counts->counts) *response.add_counts() = std::move(count);
  return response;
}

}  // namespace muster::broker
