#include "clients/cli/slurm/sacct_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/time/civil_time.h"
#include "contract/characters.h"
#include "contract/parts.h"

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

char Small(char c) {
  return contract::IsLetter(c) && !contract::IsLowerLetter(c) ? static_cast<char>(c - 'A' + 'a')
                                                              : c;
}

// Reads a text from its beginning.
class TimeReader {
 public:
  TimeReader(std::string_view text, absl::CivilDay today) : text_(text), today_(today) {}

  // Returns nothing if the text is no time.
  std::optional<absl::CivilSecond> Read() {
    while (SkipBetween()) {
      const bool read = ReadWord() || ReadClock() || ReadDate();
      if (!read) return std::nullopt;
    }
    if (!day_.has_value() && !seconds_.has_value()) return std::nullopt;
    return absl::CivilSecond(day_.value_or(today_)) + seconds_.value_or(0);
  }

 private:
  // False: the end.
  bool SkipBetween() {
    const bool has_part = day_.has_value() || seconds_.has_value();
    while (!text_.empty() && (text_[0] == ' ' || (has_part && IsBetween()))) text_.remove_prefix(1);
    return !text_.empty();
  }
  bool IsBetween() const {
    return text_[0] == '-' || (text_[0] == 'T' && text_.size() > 1 && contract::IsDigit(text_[1]));
  }

  bool TakeWord(std::string_view word) {
    if (text_.size() < word.size()) return false;
    const bool is_it = std::equal(word.begin(), word.end(), text_.begin(),
                                  [](char a, char b) { return a == Small(b); });
    if (is_it) text_.remove_prefix(word.size());
    return is_it;
  }

  bool ReadWord() {
    constexpr std::pair<std::string_view, int> kHours[] = {
        {"midnight", 0}, {"noon", 12}, {"fika", 15}, {"teatime", 16}};
    for (const auto& [word, hour] : kHours) {
      if (TakeWord(word)) return SetSeconds(hour * 3600);
    }
    if (TakeWord("today")) return SetDay(today_);
    return TakeWord("tomorrow") && SetDay(today_ + 1);
  }

  // The digits at the beginning, which stay there if they are not as many.
  std::optional<int> TakeNumber(size_t least, size_t most) {
    size_t size = 0;
    while (size < text_.size() && contract::IsDigit(text_[size])) ++size;
    if (size < least || size > most) return std::nullopt;
    const auto number = contract::ParseNumber<int>(text_.substr(0, size));
    text_.remove_prefix(size);
    return number;
  }
  bool Take(char c) {
    const bool is_it = text_.starts_with(c);
    if (is_it) text_.remove_prefix(1);
    return is_it;
  }

  // "3:22", "03:22:53 pm"; the text stays as it is if it does not begin so.
  bool ReadClock() {
    const std::string_view whole = text_;
    const auto hour = TakeNumber(1, 2);
    if (!hour.has_value() || !Take(':')) {
      text_ = whole;
      return false;
    }
    const auto minute = TakeNumber(2, 2);
    const auto second = Take(':') ? TakeNumber(2, 2) : std::optional<int>(0);
    if (!minute.has_value() || !second.has_value()) return false;
    const std::string_view rest = text_;
    Take(' ');
    const bool is_before_noon = TakeWord("am");
    const bool is_after_noon = !is_before_noon && TakeWord("pm");
    const bool has_half = is_before_noon || is_after_noon;
    if (!has_half) text_ = rest;
    if (*minute > 59 || *second > 59 || *hour > (has_half ? 12 : 23)) return false;
    const int of_half = has_half ? *hour % 12 : *hour;
    return SetSeconds((of_half + (is_after_noon ? 12 : 0)) * 3600 + *minute * 60 + *second);
  }

  bool ReadDate() {
    if (const auto year = TakeNumber(4, 4); year.has_value()) {
      if (!Take('-')) return SetMonthAndDay(*year / 100, *year % 100, std::nullopt);
      const auto month = TakeNumber(2, 2);
      if (!month.has_value() || !Take('-')) return false;
      const auto day = TakeNumber(2, 2);
      return day.has_value() && SetMonthAndDay(*month, *day, *year);
    }
    if (const auto all = TakeNumber(6, 6); all.has_value())
      return SetMonthAndDay(*all / 10000, *all / 100 % 100, 2000 + *all % 100);
    const auto month = TakeNumber(1, 2);
    const char point = text_.empty() ? ' ' : text_[0];
    if (!month.has_value() || (point != '/' && point != '.') || !Take(point)) return false;
    const auto day = TakeNumber(1, 2);
    if (!day.has_value()) return false;
    if (!Take(point)) return SetMonthAndDay(*month, *day, std::nullopt);
    const auto year = TakeNumber(2, 4);
    return year.has_value() && SetMonthAndDay(*month, *day, *year < 100 ? 2000 + *year : *year);
  }

  bool SetMonthAndDay(int month, int day, std::optional<int> year) {
    const int64_t own = year.has_value()         ? *year
                        : month > today_.month() ? today_.year() - 1
                                                 : today_.year();
    const absl::CivilDay read(own, month, day);
    return read.month() == month && read.day() == day && SetDay(read);
  }
  bool SetDay(absl::CivilDay day) {
    const bool is_first = !day_.has_value();
    day_ = day;
    return is_first;
  }
  bool SetSeconds(int seconds) {
    const bool is_first = !seconds_.has_value();
    seconds_ = seconds;
    return is_first;
  }

  std::string_view text_;
  const absl::CivilDay today_;
  std::optional<absl::CivilDay> day_;
  std::optional<int> seconds_;  // since midnight
};

}  // namespace

absl::Time StartOfDay(absl::Time now) {
  const absl::TimeZone zone = absl::LocalTimeZone();
  return absl::FromCivil(absl::CivilDay(absl::ToCivilDay(now, zone)), zone);
}

absl::StatusOr<absl::Time> ParseSacctTime(std::string_view text, absl::Time now) {
  const absl::TimeZone zone = absl::LocalTimeZone();
  if (text == "now") return now;
  if (text.starts_with("now-") || text.starts_with("now+")) {
    const auto offset = Offset(text.substr(3));
    if (offset.ok()) return now + *offset;
  }
  const auto read = TimeReader(text, absl::ToCivilDay(now, zone)).Read();
  if (read.has_value()) return absl::FromCivil(*read, zone);
  return absl::InvalidArgumentError(
      fmt::format("Invalid time specification: {}; use for example 2026-11-21T03:22, 11/21, "
                  "today or now-2days",
                  contract::Quoted(text)));
}

}  // namespace muster::cli
