#include "clients/cpp/skypilot/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

#include "clients/cpp/skypilot/scalar.h"
#include "contract/characters.h"
#include "contract/units.h"

namespace muster::client::skypilot {
namespace {

std::string_view Form(const YAML::Node& node) {
  if (node.IsMap()) return "a mapping";
  if (node.IsSequence()) return "a list";
  return KindName(ReadScalar(node).kind);
}

// Cuts blanks, and a '+' at the end, which means "or more".
std::string_view Amount(std::string_view text) {
  while (text.ends_with(' ')) text.remove_suffix(1);
  while (text.starts_with(' ')) text.remove_prefix(1);
  if (text.ends_with('+')) text.remove_suffix(1);
  return text;
}

// Returns the bytes of a unit; nothing if it is none. No unit at all means GiB.
std::optional<double> UnitBytes(std::string unit) {
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  constexpr std::string_view kPrefixes = "KMGTP";
  if (unit.empty()) unit = "GB";
  const size_t power = kPrefixes.find(unit[0]);
  if (unit.size() != 2 || power == kPrefixes.npos || (unit[1] != 'B' && unit[1] != 'I')) {
    return std::nullopt;
  }
  return std::ldexp(1.0, static_cast<int>(10 * (power + 1)));
}

}  // namespace

bool ReadText(YamlReader& in, const YamlValue& value, std::string* out) {
  const Scalar scalar = ReadScalar(value.node);
  if (value.node.IsScalar() && scalar.kind == ScalarKind::kText) {
    *out = scalar.text;
    return true;
  }
  const bool is_scalar = value.node.IsScalar();
  in.Problem(value, is_scalar
                        ? fmt::format("expected a text, and {} without quotes is {}; write "
                                      "it in quotes",
                                      contract::Quoted(value.node.Scalar()), KindName(scalar.kind))
                        : fmt::format("expected a text, found {}", Form(value.node)));
  return false;
}

bool ReadInteger(YamlReader& in, const YamlValue& value, int64_t min, int64_t max, int64_t* out) {
  const Scalar scalar = ReadScalar(value.node);
  if (value.node.IsScalar() && scalar.kind == ScalarKind::kInteger && scalar.number >= min &&
      scalar.number <= max) {
    *out = static_cast<int64_t>(scalar.number);
    return true;
  }
  in.Problem(value, fmt::format("expected a whole number from {} to {}, without quotes, found {}",
                                min, max,
                                value.node.IsScalar() ? contract::Quoted(value.node.Scalar())
                                                      : std::string(Form(value.node))));
  return false;
}

bool ReadTextOrNumber(YamlReader& in, const YamlValue& value, std::string* out) {
  const Scalar scalar = ReadScalar(value.node);
  const bool is_good = scalar.kind == ScalarKind::kText || scalar.kind == ScalarKind::kInteger ||
                       scalar.kind == ScalarKind::kFloat;
  if (is_good) {
    *out = scalar.text;
  } else {
    in.Problem(value, fmt::format("expected a number or a text, found {}", Form(value.node)));
  }
  return is_good;
}

Fields ReadFields(YamlReader& in, const YamlValue& value,
                  const std::vector<std::string_view>& names,
                  const std::map<std::string_view, std::string_view>& hints) {
  Fields found;
  std::vector<YamlReader::Field> fields;
  fields.reserve(names.size());
  for (std::string_view name : names) {
    fields.push_back({std::string(name), [&found, name](const YamlValue& inner) {
                        if (!inner.node.IsNull()) {
                          found.insert_or_assign(std::string(name.substr(0, name.find('|'))),
                                                 inner);
                        }
                      }});
  }
  in.Mapping(value, fields, hints);
  return found;
}

const YamlValue* Find(const Fields& fields, const std::string& name) {
  const auto found = fields.find(name);
  return found == fields.end() ? nullptr : &found->second;
}

absl::StatusOr<uint64_t> ParseTaskCpus(std::string_view text) {
  const absl::StatusOr<uint64_t> millis = contract::ParseCpus(Amount(text));
  if (millis.ok()) return millis;
  return absl::InvalidArgumentError(
      fmt::format("{} is not a number of CPU cores; use a number above 0 with at most three "
                  "decimals, like 4, 0.5 or \"4+\"",
                  contract::Quoted(text)));
}

absl::StatusOr<uint64_t> ParseTaskMemory(std::string_view text) {
  constexpr double kMaxBytes = 0x1p50;
  const std::string_view amount = Amount(text);
  const size_t digits = std::min(amount.find_first_not_of("0123456789."), amount.size());
  double number = 0;
  const auto [end, error] = std::from_chars(amount.data(), amount.data() + digits, number);
  std::string_view unit = amount.substr(digits);
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const std::optional<double> unit_bytes = UnitBytes(std::string(unit));
  if (error != std::errc() || end != amount.data() + digits || !unit_bytes) {
    return absl::InvalidArgumentError(
        fmt::format("{} is not an amount of memory; use a number of GiB, like 16 or \"16+\", or "
                    "one with KB, MB, GB, TB or PB, the '+' last",
                    contract::Quoted(text)));
  }
  const double bytes = std::ceil(number * *unit_bytes);
  if (bytes > kMaxBytes) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is too much; a plain number is GiB, and 1024TB is the most", contract::Quoted(text)));
  }
  return static_cast<uint64_t>(bytes);
}

bool IsTaskName(std::string_view text) {
  int joints = 0;
  bool is_inside = false;  // whether a letter or digit has been seen
  for (const char c : text) {
    if (contract::IsLetter(c) || contract::IsDigit(c)) {
      is_inside = true;
      joints = 0;
    } else if ((c == '.' || c == '_' || c == '-') && is_inside && joints < 2) {
      ++joints;
    } else {
      return false;
    }
  }
  return is_inside && joints == 0;
}

}  // namespace muster::client::skypilot
