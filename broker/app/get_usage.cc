#include "broker/app/get_usage.h"

#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "broker/app/arguments.h"
#include "broker/app/rights.h"
#include "broker/core/run_usage.h"
#include "broker/store/store.h"
#include "contract/errors.h"

namespace muster::broker {
namespace {

using google::protobuf::util::TimeUtil;

constexpr int64_t kDefaultDays = 30;
constexpr int64_t kSecondsOfDay = int64_t{24} * 3600;
// An answer has at most this many rows, at about 100 B each: less than the 4 MiB that gRPC's
// clients take by default.
constexpr size_t kMaxRows = 10'000;
// The store reads at most this many rows for them, as each may have several types of GPUs.
constexpr size_t kMaxStoredRows = 100'000;

google::protobuf::Timestamp BeginOf(int64_t day) {
  return TimeUtil::SecondsToTimestamp(day * kSecondsOfDay);
}

bool* PartOf(v1::UsageGrouping grouping, store::UsageParts* parts) {
  switch (grouping) {
    case v1::USAGE_GROUPING_PROJECT:
      return &parts->project;
    case v1::USAGE_GROUPING_USER:
      return &parts->user;
    case v1::USAGE_GROUPING_CLUSTER:
      return &parts->cluster;
    case v1::USAGE_GROUPING_DAY:
      return &parts->day;
    default:
      return nullptr;
  }
}

void ReadParts(const v1::GetUsageRequest& request, store::UsageParts* parts,
               contract::FieldErrors* errors) {
  for (int i = 0; i < request.group_by_size(); ++i) {
    const std::string field = fmt::format("group_by[{}]", i);
    bool* const part = PartOf(request.group_by(i), parts);
    if (part == nullptr) {
      errors->Add(field, fmt::format("{} is no grouping; use project, user, cluster or day",
                                     static_cast<int>(request.group_by(i))));
    } else if (std::exchange(*part, true)) {
      errors->Add(field, "is there twice; name each grouping once");
    }
  }
}

absl::StatusOr<store::UsageQuery> ReadQuery(const v1::GetUsageRequest& request, absl::Time now) {
  contract::FieldErrors errors;
  store::UsageQuery query{.project = request.project(),
                          .user = request.user(),
                          .cluster = request.cluster(),
                          .limit = kMaxStoredRows};
  ReadParts(request, &query.parts, &errors);
  const std::optional<int64_t> start =
      ToMicros("start_time", request.has_start_time(), request.start_time(), &errors);
  const std::optional<int64_t> end =
      ToMicros("end_time", request.has_end_time(), request.end_time(), &errors);
  if (absl::Status status = errors.ToStatus(); !status.ok()) return status;
  query.last_day = core::DayOf(end.value_or(absl::ToUnixMicros(now)));
  query.first_day = start ? core::DayOf(*start) : query.last_day - kDefaultDays;
  if (query.first_day <= query.last_day) return query;
  return contract::BadField("start_time", "is after end_time; give an earlier one");
}

void Add(int64_t ms, google::protobuf::Duration* sum) {
  *sum = TimeUtil::MillisecondsToDuration(TimeUtil::DurationToMilliseconds(*sum) + ms);
}

void Add(const core::AddUsage& row, v1::Usage* sum) {
  sum->set_runs(sum->runs() + static_cast<uint64_t>(row.runs));
  Add(row.run_ms, sum->mutable_run_time());
  Add(row.core_ms, sum->mutable_core_time());
  Add(row.gpu_ms, sum->mutable_gpu_time());
  if (row.gpu_ms > 0) Add(row.gpu_ms, &(*sum->mutable_gpu_time_by_type())[row.gpu_type]);
}

// The rows of all types of GPUs of one combination become one.
std::vector<v1::Usage> Join(const std::vector<core::AddUsage>& rows, bool has_days) {
  std::map<std::tuple<int64_t, std::string, std::string, std::string>, v1::Usage> joined;
  for (const core::AddUsage& row : rows) {
    v1::Usage& usage = joined[{row.day, row.project, row.user, row.cluster}];
    usage.set_project(row.project);
    usage.set_user(row.user);
    usage.set_cluster(row.cluster);
    if (has_days) *usage.mutable_day() = BeginOf(row.day);
    Add(row, &usage);
  }
  std::vector<v1::Usage> out;
  out.reserve(joined.size());
  for (auto& [key, usage] : joined) out.push_back(std::move(usage));
  return out;
}

bool IsMore(const v1::Usage& a, const v1::Usage& b) {
  const auto size = [](const v1::Usage& usage) {
    return std::pair(TimeUtil::DurationToMilliseconds(usage.gpu_time()),
                     TimeUtil::DurationToMilliseconds(usage.core_time()));
  };
  if (a.day().seconds() != b.day().seconds()) return a.day().seconds() < b.day().seconds();
  return size(a) > size(b);
}

}  // namespace

absl::StatusOr<v1::GetUsageResponse> GetUsage(const Principal& principal, const Services& services,
                                              const v1::GetUsageRequest& request) {
  const absl::StatusOr<store::Scope> scope = Authorize(principal, UseCase::kReadJobs);
  if (!scope.ok()) return scope.status();
  const absl::StatusOr<store::UsageQuery> query = ReadQuery(request, services.now());
  if (!query.ok()) return query.status();
  const absl::StatusOr<store::UsageRows> stored = services.store->ListUsage(*scope, *query);
  if (!stored.ok()) return stored.status();
  std::vector<v1::Usage> rows = Join(stored->rows, query->parts.day);
  if (stored->is_over || rows.size() > kMaxRows) {
    return contract::Error(absl::StatusCode::kResourceExhausted, "TOO_MANY_ROWS",
                           fmt::format("the answer would have more than {} rows; ask for fewer "
                                       "days, or group by less",
                                       kMaxRows),
                           {{"field", "group_by"}});
  }
  std::stable_sort(rows.begin(), rows.end(), IsMore);
  v1::GetUsageResponse response;
  response.mutable_total();
  for (const core::AddUsage& row : stored->rows) Add(row, response.mutable_total());
  *response.mutable_start_time() = BeginOf(query->first_day);
  *response.mutable_end_time() = BeginOf(query->last_day + 1);
  if (request.group_by().empty()) return response;
  for (v1::Usage& row : rows) *response.add_rows() = std::move(row);
  return response;
}

}  // namespace muster::broker
