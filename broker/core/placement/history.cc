#include "broker/core/placement/history.h"

#include <algorithm>
#include <cmath>

#include "broker/core/timestamps.h"

namespace muster::core::placement {
namespace {

constexpr double kRunsPerHalf = 64;
constexpr absl::Duration kFadesInHalf = absl::Hours(1);

std::optional<absl::Duration> Faded(const Mean& mean, absl::Time last, absl::Time now) {
  if (mean.empty()) return std::nullopt;
  // A clock that was set back makes nothing younger.
  const double halves = std::max(0.0, absl::FDivDuration(now - last, kFadesInHalf));
  return absl::Seconds(mean.value() * std::exp2(-halves));
}

void PutDuration(double seconds, google::protobuf::Duration* out) {
  const auto millis = static_cast<int64_t>(std::llround(seconds * 1000));
  out->set_seconds(millis / 1000);
  out->set_nanos(static_cast<int32_t>(millis % 1000 * 1'000'000));
}

}  // namespace

void Mean::Add(double value) {
  static const double kKeeps = std::exp2(-1 / kRunsPerHalf);
  sum_ = sum_ * kKeeps + value;
  weight_ = weight_ * kKeeps + 1;
}

void Waits::Add(absl::Duration wait, uint32_t places, absl::Time now) {
  const double seconds = absl::ToDoubleSeconds(wait);
  if (places == 0) {
    with_room_.Add(seconds);
    room_at_ = now;
  } else {
    for_a_place_.Add(seconds / places);
    place_at_ = now;
  }
}

std::optional<absl::Duration> Waits::WithRoom(absl::Time now) const {
  return Faded(with_room_, room_at_, now);
}

std::optional<absl::Duration> Waits::ForAPlace(absl::Time now) const {
  return Faded(for_a_place_, place_at_, now);
}

void Errors::Add(absl::Duration wait, absl::Duration error) {
  waits_.Add(absl::ToDoubleSeconds(wait));
  errors_.Add(absl::ToDoubleSeconds(absl::AbsDuration(error)));
  last_[runs_ % kKept] = static_cast<float>(absl::ToDoubleSeconds(error));
  ++runs_;
  const auto count = static_cast<ptrdiff_t>(std::min<uint64_t>(runs_, kKept));
  std::array<float, kKept> sorted = last_;
  const auto end = sorted.begin() + count;
  std::sort(sorted.begin(), end);
  lower_ = sorted[static_cast<size_t>(count / 4)];
  upper_ = sorted[static_cast<size_t>((count * 3 - 1) / 4)];
}

bool Errors::Describe(v1::EstimateErrors* out) const {
  if (runs_ == 0) return false;
  out->set_runs(runs_);
  PutDuration(waits_.value(), out->mutable_mean_wait());
  PutDuration(errors_.value(), out->mutable_mean_error());
  return true;
}

void Errors::PutInterval(absl::Time now, v1::StartEstimate* estimate) const {
  if (runs_ < kFewest) return;
  const absl::Time time = ToTime(estimate->time());
  // It cannot start in the past, and the most likely time lies in the interval.
  const absl::Time earliest = std::max(now, time + absl::Seconds(lower_));
  SetTimestamp(std::min(earliest, time), estimate->mutable_earliest());
  SetTimestamp(std::max(time, time + absl::Seconds(upper_)), estimate->mutable_latest());
}

}  // namespace muster::core::placement
