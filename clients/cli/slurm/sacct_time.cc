#include "clients/cli/slurm/sacct_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "contract/characters.h"
#include "contract/parts.h"
#include "contract/text.h"

namespace muster::cli {
namespace {

constexpr int64_t kMaxAmount = 1'000'000'000;

// "-2hours", "+30".
absl::StatusOr<absl::Duration> Offset(std::string_view text) {
  const bool is_before = text.starts_with('-');
  text.remove_prefix(1);
  const auto* end = std::find_if_not(text.begin(), text.end(), contract::IsDigit);
  const size_t digits = static_cast<size_t>(end - text.begin());
  const auto amount = contract::ParseNumber<int64_t>(text.substr(0, digits));
  const std::string_view unit = text.substr(digits);
  constexpr std::pair<std::string_view, int64_t> kUnits[] = {
      {"seconds", 1}, {"minutes", 60}, {"hours", 3600}, {"days", 86400}, {"weeks", 604800}};
  const auto* found = std::find_if(std::begin(kUnits), std::end(kUnits),
                                   [&](const auto& one) { return one.first.starts_with(unit); });
  if (!amount.has_value() || *amount > kMaxAmount || found == std::end(kUnits)) {
    return absl::InvalidArgumentError("");
  }
  const absl::Duration offset = absl::Seconds(*amount * found->second);
  return is_before ? -offset : offset;
}

}  // namespace

absl::Time StartOfDay(absl::Time now) {
  const absl::TimeZone zone = absl::LocalTimeZone();
  return absl::FromCivil(absl::CivilDay(absl::ToCivilDay(now, zone)), zone);
}

absl::StatusOr<absl::Time> ParseSacctTime(std::string_view text, absl::Time now) {
  const absl::TimeZone zone = absl::LocalTimeZone();
  const absl::Time midnight = StartOfDay(now);
  if (text == "now") return now;
  if (text == "today" || text == "midnight") return midnight;
  if (text == "noon") return midnight + absl::Hours(12);
  if (text.starts_with("now-") || text.starts_with("now+")) {
    const auto offset = Offset(text.substr(3));
    if (offset.ok()) return now + *offset;
  }
  constexpr std::array<std::string_view, 7> kForms = {
      "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d", "%m/%d/%y-%H:%M:%S",
      "%m/%d/%y-%H:%M",    "%m/%d/%y",       "%m/%d"};
  absl::Time time;
  std::string ignored;
  for (std::string_view form : kForms) {
    const bool lacks_year = form == "%m/%d";
    const std::string year = absl::FormatTime("%Y", now, zone);
    const bool read =
        lacks_year
            ? absl::ParseTime("%Y/%m/%d", fmt::format("{}/{}", year, text), zone, &time, &ignored)
            : absl::ParseTime(ToAbsl(form), ToAbsl(text), zone, &time, &ignored);
    if (read) return time;
  }
  const std::string today = absl::FormatTime("%Y-%m-%d", now, zone);
  for (std::string_view form : {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M"}) {
    if (absl::ParseTime(ToAbsl(form), fmt::format("{}T{}", today, text), zone, &time, &ignored)) {
      return time;
    }
  }
  return absl::InvalidArgumentError(
      fmt::format("Invalid time specification: {}; use for example 2026-11-21T03:22, 11/21, "
                  "today or now-2days",
                  contract::Quoted(text)));
}

}  // namespace muster::cli
