#include "contract/units.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "contract/characters.h"
#include "contract/errors.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

// Wide enough for any product of a decimal below and a unit.
using Wide = unsigned __int128;

constexpr int64_t kMaxSeconds = 36500 * int64_t{86400};
constexpr uint64_t kMaxBytes = uint64_t{1} << 50;
constexpr uint64_t kMostCpuMillis = 10'000'000;
constexpr uint64_t kMillisOfGpu = 1'000;  // one
constexpr uint64_t kMostGpuMillis = 1'000'000;
constexpr size_t kMaxGpuTypeBytes = 63;

// digits / scale, exactly as written.
struct Decimal {
  uint64_t digits = 0;
  uint64_t scale = 1;

  Wide TimesRoundedUp(uint64_t unit) const { return (Wide{digits} * unit + scale - 1) / scale; }
};

// Takes "12" or "3.8" from the front of the text; at most nine digits on either side of the point.
std::optional<Decimal> TakeDecimal(std::string_view* text) {
  constexpr size_t kMaxDigits = 18;
  Decimal decimal;
  size_t whole = 0;
  size_t used = 0;
  while (used < text->size() && IsDigit((*text)[used])) {
    if (++whole > kMaxDigits) return std::nullopt;
    decimal.digits = decimal.digits * 10 + ((*text)[used++] - '0');
  }
  if (whole == 0) return std::nullopt;
  if (used < text->size() && (*text)[used] == '.') {
    size_t decimals = 0;
    ++used;
    while (used < text->size() && IsDigit((*text)[used])) {
      if (++decimals + whole > kMaxDigits) return std::nullopt;
      decimal.digits = decimal.digits * 10 + ((*text)[used++] - '0');
      decimal.scale *= 10;
    }
    if (decimals == 0) return std::nullopt;
  }
  text->remove_prefix(used);
  return decimal;
}

// Returns the whole text as a number of thousandths.
std::optional<uint64_t> ParseMillis(std::string_view text, uint64_t max) {
  const auto decimal = TakeDecimal(&text);
  if (!decimal || !text.empty() || decimal->scale > 1000) return std::nullopt;
  const Wide millis = decimal->TimesRoundedUp(1000);
  if (millis < 1 || millis > max) return std::nullopt;
  return static_cast<uint64_t>(millis);
}

std::string FormatMillis(uint64_t millis) {
  std::string text = fmt::format("{}.{:03}", millis / 1000, millis % 1000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

// Reads "1h30m" and "90" as nanoseconds.
std::optional<Wide> ParseUnitDuration(std::string_view text) {
  constexpr std::string_view kUnits = "dhms";
  constexpr uint64_t kNanos[] = {86400'000'000'000, 3600'000'000'000, 60'000'000'000,
                                 1'000'000'000};
  Wide nanos = 0;
  size_t next_unit = 0;
  bool is_first = true;
  while (!text.empty()) {
    const auto decimal = TakeDecimal(&text);
    if (!decimal) return std::nullopt;
    size_t unit = kUnits.size() - 1;
    if (!text.empty()) {
      unit = kUnits.find(text.front());
      if (unit == kUnits.npos || unit < next_unit) return std::nullopt;
      text.remove_prefix(1);
    } else if (!is_first) {
      return std::nullopt;
    }
    nanos += decimal->TimesRoundedUp(kNanos[unit]);
    next_unit = unit + 1;
    is_first = false;
  }
  return is_first ? std::nullopt : std::optional(nanos);
}

// Takes digits from the front of the text; at most nine, so that sums do not overflow.
std::optional<int64_t> TakeInteger(std::string_view* text) {
  int64_t value = 0;
  size_t used = 0;
  while (used < text->size() && IsDigit((*text)[used])) {
    if (used == 9) return std::nullopt;
    value = value * 10 + ((*text)[used++] - '0');
  }
  if (used == 0) return std::nullopt;
  text->remove_prefix(used);
  return value;
}

// Reads "[D-]A[:B[:C]]" in Slurm's way, as seconds. The first number may be of any size, the rest
// are below their limits.
std::optional<int64_t> ParseSlurmDuration(std::string_view text) {
  auto number = TakeInteger(&text);
  if (!number) return std::nullopt;
  const bool has_days = !text.empty() && text.front() == '-';
  const int64_t days = has_days ? *number : 0;
  if (has_days) {
    text.remove_prefix(1);
    number = TakeInteger(&text);
    if (!number || *number > 23) return std::nullopt;
  }
  std::array<int64_t, 3> parts = {*number, 0, 0};
  size_t count = 1;
  while (!text.empty()) {
    if (count == parts.size() || text.front() != ':') return std::nullopt;
    text.remove_prefix(1);
    number = TakeInteger(&text);
    if (!number || *number > 59) return std::nullopt;
    parts[count++] = *number;
  }
  // The first part is hours if there are days, or three parts; two parts alone are minutes and
  // seconds.
  if (has_days || count == 3) return days * 86400 + parts[0] * 3600 + parts[1] * 60 + parts[2];
  return parts[0] * 60 + parts[1];
}

}  // namespace

absl::StatusOr<absl::Duration> ParseDuration(std::string_view text) {
  const bool is_slurm = text.find_first_of(":-") != text.npos;
  std::optional<Wide> nanos;
  if (!is_slurm) {
    nanos = ParseUnitDuration(text);
  } else if (const auto seconds = ParseSlurmDuration(text)) {
    nanos = Wide{static_cast<uint64_t>(*seconds)} * 1'000'000'000;
  }
  if (!nanos) {
    return BadField("duration",
                    fmt::format("{} is not a duration; use forms like 90s, 15m, 3.8h, 1h30m, 2d, "
                                "30:00 (minutes), 12:00:00 or 1-12:00:00 (days-hours)",
                                Quoted(text)));
  }
  if (*nanos > Wide{kMaxSeconds} * 1'000'000'000) {
    return BadField("duration",
                    fmt::format("{} is more than 36500 days; use at most 36500d", Quoted(text)));
  }
  return absl::Nanoseconds(static_cast<int64_t>(*nanos));
}

std::string FormatDuration(absl::Duration duration) {
  if (duration < absl::ZeroDuration()) return "-" + contract::FormatDuration(-duration);
  if (duration == absl::InfiniteDuration()) return "forever";
  struct Unit {
    int64_t seconds;
    char letter;
  };
  constexpr Unit kUnits[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
  const int64_t seconds = absl::ToInt64Seconds(duration);
  size_t first = 0;
  while (first < 3 && seconds < kUnits[first].seconds) ++first;
  const Unit& major = kUnits[first];
  std::string text = fmt::format("{}{}", seconds / major.seconds, major.letter);
  if (first < 3) {
    const Unit& minor = kUnits[first + 1];
    const int64_t rest = seconds % major.seconds / minor.seconds;
    if (rest > 0) text += fmt::format("{}{}", rest, minor.letter);
  }
  return text;
}

absl::StatusOr<uint64_t> ParseBytes(std::string_view text) {
  std::string_view rest = text;
  const auto decimal = TakeDecimal(&rest);
  uint64_t unit = 1;
  if (!rest.empty()) {
    constexpr std::string_view kPrefixes = "KMGT";
    const size_t power = kPrefixes.find(std::toupper(static_cast<unsigned char>(rest.front())));
    if (power != kPrefixes.npos) {
      rest.remove_prefix(1);
      const bool is_binary = !rest.empty() && (rest.front() == 'i' || rest.front() == 'I');
      if (is_binary) rest.remove_prefix(1);
      for (size_t i = 0; i <= power; ++i) unit *= is_binary ? 1024 : 1000;
    }
    if (rest == "B" || rest == "b") rest = {};
  }
  if (!decimal || !rest.empty()) {
    return BadField("bytes", fmt::format("{} is not an amount of memory; use forms like 512M, "
                                         "1.5G (powers of 1000) or 16Gi (powers of 1024)",
                                         Quoted(text)));
  }
  const Wide bytes = decimal->TimesRoundedUp(unit);
  if (bytes > kMaxBytes) {
    return BadField("bytes", fmt::format("{} is too much; use at most 1024Ti", Quoted(text)));
  }
  return static_cast<uint64_t>(bytes);
}

std::string FormatBytes(uint64_t bytes) {
  constexpr std::string_view kPrefixes = "KMGT";
  if (bytes < 1024) return fmt::format("{}", bytes);
  size_t power = 0;
  uint64_t unit = 1024;
  while (power + 1 < kPrefixes.size() && bytes / unit >= 1024) {
    unit *= 1024;
    ++power;
  }
  const auto tenths = static_cast<uint64_t>(Wide{bytes} * 10 / unit);
  if (tenths % 10 == 0) return fmt::format("{}{}i", tenths / 10, kPrefixes[power]);
  return fmt::format("{}.{}{}i", tenths / 10, tenths % 10, kPrefixes[power]);
}

absl::StatusOr<uint64_t> ParseCpus(std::string_view text) {
  if (const auto millis = ParseMillis(text, kMostCpuMillis)) return *millis;
  return BadField("cpus",
                  fmt::format("{} is not a number of CPU cores; use a number from 0.001 to 10000 "
                              "with at most three decimals, like 4 or 0.5",
                              Quoted(text)));
}

std::string FormatCpus(uint64_t cpu_millis) { return FormatMillis(cpu_millis); }

namespace {

// Refuses a number of GPUs that would be taken for a type of GPU.
absl::Status CheckIsNoOddCount(std::string_view text) {
  constexpr std::string_view kWords[] = {"none", "one", "two",   "three", "four",
                                         "five", "six", "seven", "eight"};
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const auto* word = std::find(std::begin(kWords), std::end(kWords), lower);
  if (word != std::end(kWords)) {
    return BadField("gpus", fmt::format("{} is no number; write {}, or a type and a number like "
                                        "H100:8",
                                        Quoted(text), word - std::begin(kWords)));
  }
  // This is "2xH100", since no type of GPU has such a name.
  const size_t digits = text.find_first_not_of("0123456789");
  if (digits != text.npos && digits > 0 && (text[digits] == 'x' || text[digits] == '*') &&
      digits + 1 < text.size()) {
    return BadField("gpus", fmt::format("{} is no type of GPU; use {}:{}", Quoted(text),
                                        text.substr(digits + 1), text.substr(0, digits)));
  }
  if (!text.starts_with('-') && !text.starts_with('+')) return absl::OkStatus();
  return BadField("gpus", fmt::format("{} is no number of GPUs; use 0 to 1000, or a type and a "
                                      "number like H100:8",
                                      Quoted(text)));
}

}  // namespace

absl::StatusOr<v1::GpuRequest> ParseGpus(std::string_view text) {
  if (absl::Status status = CheckIsNoOddCount(text); !status.ok()) return status;
  v1::GpuRequest gpus;
  const size_t colon = text.find(':');
  std::string_view type = colon == text.npos ? text : text.substr(0, colon);
  std::optional<uint64_t> millis;
  if (text == "0") {
    millis = 0;
    type = {};
  } else if (colon != text.npos) {
    millis = ParseMillis(text.substr(colon + 1), kMostGpuMillis);
  } else if (text.find_first_not_of("0123456789.") == text.npos) {
    millis = ParseMillis(text, kMostGpuMillis);
    type = {};
  } else {
    millis = 1000;
  }
  const bool good_type =
      type.size() <= kMaxGpuTypeBytes && (colon == text.npos || !type.empty()) &&
      std::all_of(type.begin(), type.end(), [](char c) {
        return IsLetter(c) || IsDigit(c) || c == '-' || c == '_' || c == '.' || c == '/';
      });
  if (!millis || !good_type) {
    return BadField("gpus",
                    fmt::format("{} is not a request for GPUs; use a count, a type or both, like "
                                "8, H100, H100:8 or, of one GPU, H100:0.5 or H100:0.333, with at "
                                "most 1000 and at most three decimals",
                                Quoted(text)));
  }
  if (*millis > kMillisOfGpu && *millis % kMillisOfGpu != 0) {
    return BadField("gpus",
                    fmt::format("{} is neither a share of one GPU nor whole GPUs; use 0.001 "
                                "to 0.999 or a whole number",
                                Quoted(text)));
  }
  gpus.set_type(std::string(type));
  gpus.set_count_millis(*millis);
  return gpus;
}

std::string FormatGpus(const v1::GpuRequest& gpus) {
  const std::string count = FormatMillis(gpus.count_millis());
  return gpus.type().empty() ? count : gpus.type() + ":" + count;
}

}  // namespace muster::contract
