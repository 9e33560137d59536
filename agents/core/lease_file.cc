#include "agents/core/lease_file.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace muster::agents {
namespace {

constexpr std::string_view kMagic = "muster-lease 1";

// Takes one space and the number behind it from the front of `text`.
template <typename Number>
bool TakeNumber(std::string_view& text, Number& number) {
  if (text.empty() || text.front() != ' ') return false;
  text.remove_prefix(1);
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(stop - text.data()));
  return true;
}

}  // namespace

std::string FormatLeaseFile(const LeaseFile& lease) {
  return std::string(kMagic) + " " + std::to_string(lease.number) + " " +
         std::to_string(lease.remaining_ms) + " " + std::to_string(lease.end_unix_ms) + "\n";
}

std::optional<LeaseFile> ParseLeaseFile(std::string_view text) {
  if (text.size() > kMaxLeaseFileBytes || text.substr(0, kMagic.size()) != kMagic) {
    return std::nullopt;
  }
  text.remove_prefix(kMagic.size());
  LeaseFile lease;
  if (!TakeNumber(text, lease.number) || !TakeNumber(text, lease.remaining_ms) ||
      !TakeNumber(text, lease.end_unix_ms) || text != "\n" || lease.number == 0 ||
      lease.remaining_ms < 0 || lease.remaining_ms > kMaxLeaseMs || lease.end_unix_ms < 0) {
    return std::nullopt;
  }
  return lease;
}

LeaseFile NextLease(uint64_t last_number, int64_t unix_ms, int64_t remaining_ms) {
  const auto by_clock = static_cast<uint64_t>(std::max<int64_t>(unix_ms, 0));
  const int64_t remaining = std::clamp<int64_t>(remaining_ms, 0, kMaxLeaseMs);
  return {.number = std::max(last_number + 1, by_clock),
          .remaining_ms = remaining,
          .end_unix_ms = unix_ms + remaining};
}

bool MayStartUnderLease(const std::optional<LeaseFile>& lease, int64_t unix_ms) {
  return lease.has_value() && unix_ms < lease->end_unix_ms &&
         lease->end_unix_ms - unix_ms <= lease->remaining_ms + kLeaseClockSkewMs;
}

NodeLease::NodeLease(const LeaseFile& lease, int64_t steady_ms, int64_t unix_ms)
    : number_(lease.number),
      end_steady_ms_(steady_ms + std::min(lease.remaining_ms, lease.end_unix_ms - unix_ms)),
      end_unix_ms_(lease.end_unix_ms) {}

bool NodeLease::Over(const std::optional<LeaseFile>& lease, int64_t steady_ms, int64_t unix_ms) {
  if (over_ || steady_ms >= end_steady_ms_) return over_ = true;
  if (lease.has_value() && lease->number > number_) {
    number_ = lease->number;
    end_steady_ms_ = steady_ms + lease->remaining_ms;
    end_unix_ms_ = lease->end_unix_ms;
  }
  over_ = steady_ms >= end_steady_ms_ || unix_ms > end_unix_ms_ + kLeaseClockSkewMs;
  return over_;
}

}  // namespace muster::agents
