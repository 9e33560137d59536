#include "contract/duration_text.h"

#include <fmt/format.h>

#include <utility>

namespace muster::contract {

std::string DurationText(const google::protobuf::Duration& duration) {
  constexpr int64_t kNanos = 1'000'000'000;
  int64_t seconds = duration.seconds();
  const int64_t nanos = duration.nanos();
  if (seconds < 0 || nanos < 0 || nanos >= kNanos)
    return nanos == 0 ? fmt::format("{}s", seconds) : fmt::format("{} s and {} ns", seconds, nanos);
  std::string text;
  for (const auto& [length, letter] : {std::pair{86400, 'd'}, {3600, 'h'}, {60, 'm'}}) {
    if (seconds >= length) text += fmt::format("{}{}", seconds / length, letter);
    seconds %= length;
  }
  if (nanos > 0) {
    std::string fraction = fmt::format("{:09}", nanos);
    fraction.erase(fraction.find_last_not_of('0') + 1);
    return text + fmt::format("{}.{}s", seconds, fraction);
  }
  return seconds > 0 || text.empty() ? text + fmt::format("{}s", seconds) : text;
}

}  // namespace muster::contract
