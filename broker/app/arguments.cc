#include "broker/app/arguments.h"

#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "broker/app/limits.h"
#include "contract/errors.h"
#include "contract/text.h"

namespace muster::broker {

absl::StatusOr<int> ToPageSize(int requested) {
  if (requested < 0) {
    return contract::BadField("page_size", fmt::format("{} is negative; use 1 to {}, or 0 for {}",
                                                       requested, kMaxPageSize, kDefaultPageSize));
  }
  return requested == 0 ? kDefaultPageSize : std::min(requested, kMaxPageSize);
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

absl::Status CheckChoice(const google::protobuf::RepeatedField<uint64_t>& ids,
                         std::string_view filter) {
  const bool is_blank = filter.find_first_not_of(" \t\r\n") == filter.npos;
  if (!ids.empty() && !filter.empty()) {
    return contract::BadField("filter", "does not go together with job_ids; give one of them");
  }
  if (ids.empty() && filter.empty()) {
    return contract::BadField("job_ids", "is empty; name at least one job, or give a filter");
  }
  if (ids.empty() && is_blank) {
    return contract::BadField("filter", "is blank; say which jobs, \"id > 0\" for all of them");
  }
  return CheckIds(ids);
}

std::optional<int64_t> ToMicros(std::string_view field, bool is_set,
                                const google::protobuf::Timestamp& time,
                                contract::FieldErrors* errors) {
  using google::protobuf::util::TimeUtil;
  if (!is_set) return std::nullopt;
  const bool is_good = time.seconds() >= TimeUtil::kTimestampMinSeconds &&
                       time.seconds() <= TimeUtil::kTimestampMaxSeconds && time.nanos() >= 0 &&
                       time.nanos() < 1'000'000'000;
  if (is_good) return TimeUtil::TimestampToMicroseconds(time);
  errors->Add(field, "is no time of the years 1 to 9999");
  return std::nullopt;
}

absl::Status CheckReason(std::string_view reason) {
  if (reason.size() <= kMaxReasonBytes) return absl::OkStatus();
  return contract::BadField(
      "reason", fmt::format("has {} bytes; the most is {}", reason.size(), kMaxReasonBytes));
}

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

}  // namespace muster::broker
