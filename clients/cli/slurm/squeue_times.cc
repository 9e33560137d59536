#include "clients/cli/slurm/squeue_times.h"

#include <algorithm>
#include <limits>

namespace muster::cli {
namespace {

// The most stands for no limit: it is longer than any.
int64_t SecondsOrMost(std::optional<absl::Duration> duration) {
  return duration.has_value() ? absl::ToInt64Seconds(*duration)
                              : std::numeric_limits<int64_t>::max();
}

}  // namespace

google::protobuf::Timestamp StartOf(const JobRecord& record) {
  const bool may_start = !HasStarted(record) && record.run() != nullptr &&
                         record.job().state() != v1::JOB_STATE_QUEUED;
  return may_start ? record.run()->estimated_start_time() : StartedAt(record);
}

google::protobuf::Timestamp EndOf(const JobRecord& record) {
  if (record.job().has_end_time()) return record.job().end_time();
  google::protobuf::Timestamp end = StartOf(record);
  if (end.seconds() == 0 || !record.time_limit.has_value()) return {};
  end.set_seconds(end.seconds() + absl::ToInt64Seconds(*record.time_limit));
  return end;
}

std::optional<absl::Duration> TimeLeft(const JobRecord& record, absl::Time now) {
  if (!record.time_limit.has_value()) return std::nullopt;
  return std::max(absl::ZeroDuration(), *record.time_limit - Elapsed(record, now));
}

std::optional<int64_t> SecondsOf(char letter, const JobRecord& record, absl::Time now) {
  switch (letter) {
    case 'S':
      return StartOf(record).seconds();
    case 'e':
      return EndOf(record).seconds();
    case 'V':
      return record.job().create_time().seconds();
    case 'M':
      return absl::ToInt64Seconds(Elapsed(record, now));
    case 'l':
      return SecondsOrMost(record.time_limit);
    case 'L':
      return SecondsOrMost(TimeLeft(record, now));
    default:
      return std::nullopt;
  }
}

}  // namespace muster::cli
