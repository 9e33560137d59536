#include "clients/cpp/skypilot/python_time.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <charconv>
#include <optional>

#include "absl/time/civil_time.h"
#include "contract/characters.h"

namespace muster::client::skypilot {
namespace {

absl::Status NoTime(std::string_view text) {
  return absl::InvalidArgumentError(fmt::format(
      "{} has the form of a date, and there is no such one; write it in quotes for a text",
      contract::Quoted(text)));
}

// Reads a few digits; 0 if there are none.
int NumberOf(const std::string& digits) {
  int number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

// Writes "03:04:05.500000", with the fraction to six digits, if it is not 0.
std::string ClockText(int hour, int minute, int second, std::string fraction) {
  fraction.resize(6, '0');
  const std::string clock = fmt::format("{:02}:{:02}:{:02}", hour, minute, second);
  return fraction == "000000" ? clock : fmt::format("{}.{}", clock, fraction);
}

// Writes "+05:30"; empty without a zone. Nothing: the zone is a day or more away.
std::optional<std::string> ZoneText(const std::string& zone, const std::string& sign, int hours,
                                    int minutes) {
  if (zone.empty()) return "";
  const int offset = hours * 60 + minutes;
  if (offset >= 24 * 60) return std::nullopt;
  return fmt::format("{}{:02}:{:02}", sign == "-" && offset > 0 ? "-" : "+", offset / 60,
                     offset % 60);
}

}  // namespace

absl::StatusOr<std::string> PythonTime(std::string_view text) {
  // PyYAML's constructor (yaml/constructor.py).
  static const RE2* const kForm = new RE2(
      "(\\d{4})-(\\d\\d?)-(\\d\\d?)(?:(?:[Tt]|[ \\t]+)(\\d\\d?):(\\d\\d):(\\d\\d)(?:\\.(\\d*))?"
      "(?:[ \\t]*(Z|([-+])(\\d\\d?)(?::(\\d\\d))?))?)?");
  int year = 0;
  int month = 0;
  int day = 0;
  // A part that is not there is empty.
  std::string hour, minute, second, fraction, zone, sign, zone_hours, zone_minutes;
  if (!RE2::FullMatch(re2::StringPiece(text.data(), text.size()), *kForm, &year, &month, &day,
                      &hour, &minute, &second, &fraction, &zone, &sign, &zone_hours,
                      &zone_minutes)) {
    return NoTime(text);
  }
  const absl::CivilDay date(year, month, day);  // the 32nd becomes the 1st
  if (year < 1 || date.month() != month || date.day() != day) return NoTime(text);
  const std::string day_text = fmt::format("{:04}-{:02}-{:02}", year, month, day);
  if (hour.empty()) return day_text;
  const auto zone_text = ZoneText(zone, sign, NumberOf(zone_hours), NumberOf(zone_minutes));
  if (NumberOf(hour) > 23 || NumberOf(minute) > 59 || NumberOf(second) > 59 || !zone_text) {
    return NoTime(text);
  }
  return fmt::format("{} {}{}", day_text,
                     ClockText(NumberOf(hour), NumberOf(minute), NumberOf(second), fraction),
                     *zone_text);
}

}  // namespace muster::client::skypilot
