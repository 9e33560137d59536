#include "clients/cpp/skypilot/scalar.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "clients/cpp/skypilot/python_time.h"
#include "contract/characters.h"
#include "contract/validate.h"

namespace muster::client::skypilot {
namespace {

// PyYAML's resolvers (yaml/resolver.py), less those of null, which yaml-cpp has seen to.
struct Patterns {
  const RE2 truth{"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF"};
  const RE2 integer{
      "[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|"
      "[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+"};
  const RE2 real{
      "[-+]?(?:[0-9][0-9_]*)\\.[0-9_]*(?:[eE][-+][0-9]+)?|\\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|"
      "[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\\.[0-9_]*|[-+]?\\.(?:inf|Inf|INF)|\\.(?:nan|NaN|NAN)"};
  const RE2 time{
      "[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \\t]+)[0-9]{1,2}:"
      "[0-9]{2}:[0-9]{2}(?:\\.[0-9]*)?(?:[ \\t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?"};
};

const Patterns& ThePatterns() {
  static const auto* const patterns = new Patterns;
  return *patterns;
}

bool Matches(const RE2& pattern, const std::string& text) { return RE2::FullMatch(text, pattern); }

// Reads "1:30:00", digits to the base of 60. NaN: a part is no number.
double Sexagesimal(std::string_view text) {
  double value = 0;
  while (true) {
    const std::string_view part = text.substr(0, text.find(':'));
    double number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error != std::errc()) return std::numeric_limits<double>::quiet_NaN();
    value = value * 60 + number;
    if (part.size() == text.size()) return value;
    text.remove_prefix(part.size() + 1);
  }
}

// Reads "+0x1F", "010", "0b11", "1_000", "1:30:00". Nothing: it has more than 64 bits.
std::optional<int64_t> IntegerOf(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
  const bool is_negative = text.starts_with('-');
  std::string_view digits = text;
  if (digits.starts_with('-') || digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.find(':') != digits.npos) {
    const double value = Sexagesimal(digits);
    constexpr double kMaxExact = 9e15;  // doubles are exact up to 2^53
    if (!(value < kMaxExact)) return std::nullopt;
    return static_cast<int64_t>(is_negative ? -value : value);
  }
  int base = 10;
  if (digits.starts_with("0x") || digits.starts_with("0b")) {
    base = digits[1] == 'x' ? 16 : 2;
    digits.remove_prefix(2);
  } else if (digits.size() > 1 && digits.front() == '0') {
    base = 8;
  }
  int64_t value = 0;
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, value, base);
  if (error != std::errc() || end != last) return std::nullopt;
  return is_negative ? -value : value;
}

double RealOf(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
  const bool is_negative = text.starts_with('-');
  std::string_view digits = text;
  if (digits.starts_with('-') || digits.starts_with('+')) digits.remove_prefix(1);
  double value = std::numeric_limits<double>::quiet_NaN();
  if (digits.find(':') != digits.npos) {
    value = Sexagesimal(digits);
  } else if (digits == ".inf" || digits == ".Inf" || digits == ".INF") {
    value = std::numeric_limits<double>::infinity();
  } else {
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
  }
  return is_negative ? -value : value;
}

// Writes repr() of a float: the shortest digits that say it, always with a point or an exponent.
std::string RealText(double value) {
  std::string text = fmt::format("{}", value);
  if (std::isfinite(value) && text.find_first_of(".e") == text.npos) text += ".0";
  return text;
}

// Writes repr() of a text. Characters beyond ASCII stay as they are.
std::string Repr(const std::string& text) {
  const bool has_single = text.find('\'') != text.npos;
  const char quote = has_single && text.find('"') == text.npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", c);
    } else {
      out += c;
    }
  }
  return out + quote;
}

bool IsText(const YAML::Node& node) {
  return node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str";
}

}  // namespace

Scalar ReadScalar(const YAML::Node& node) {
  if (!node.IsScalar()) return {};
  const std::string& text = node.Scalar();
  if (IsText(node)) return {ScalarKind::kText, text};
  const Patterns& is = ThePatterns();
  if (Matches(is.truth, text)) {
    const bool is_true = std::string_view("yYtToO").find(text[0]) != std::string_view::npos &&
                         text != "off" && text != "Off" && text != "OFF";
    return {ScalarKind::kBool, is_true ? "True" : "False"};
  }
  if (Matches(is.integer, text)) {
    const auto value = IntegerOf(text);
    if (!value) return {ScalarKind::kInteger, text, RealOf(text)};
    return {ScalarKind::kInteger, fmt::format("{}", *value), static_cast<double>(*value)};
  }
  if (Matches(is.real, text)) {
    const double value = RealOf(text);
    return {ScalarKind::kFloat, RealText(value), value};
  }
  if (Matches(is.time, text)) return {ScalarKind::kTime, PythonTime(text).value_or(text)};
  return {ScalarKind::kText, text};
}

std::string_view KindName(ScalarKind kind) {
  switch (kind) {
    case ScalarKind::kNull:
      return "nothing";
    case ScalarKind::kBool:
      return "True or False";
    case ScalarKind::kInteger:
    case ScalarKind::kFloat:
      return "a number";
    case ScalarKind::kTime:
      return "a date";
    case ScalarKind::kText:
      return "a text";
  }
  return "a value";
}

absl::StatusOr<std::string> PythonText(const YAML::Node& node) {
  if (node.IsScalar()) {
    const Scalar scalar = ReadScalar(node);
    if (scalar.kind == ScalarKind::kTime) return PythonTime(node.Scalar());
    return scalar.text;
  }
  if (!node.IsSequence()) {
    return absl::InvalidArgumentError("expected a text, a number or a list of them");
  }
  std::string out = "[";
  for (const YAML::Node& item : node) {
    if (!item.IsScalar() && !item.IsNull()) {
      return absl::InvalidArgumentError(
          "a list here may hold texts and numbers only; write the whole as a text in quotes");
    }
    const Scalar scalar = ReadScalar(item);
    if (scalar.kind == ScalarKind::kTime) {
      return absl::InvalidArgumentError(
          fmt::format("{} without quotes is a date in YAML; write it in quotes",
                      contract::Quoted(item.Scalar())));
    }
    if (out.size() > 1) out += ", ";
    out += scalar.kind == ScalarKind::kNull   ? "None"
           : scalar.kind == ScalarKind::kText ? Repr(scalar.text)
                                              : scalar.text;
    // Aliases make a long text of a short file.
    if (out.size() > contract::kMaxArgBytes) {
      return absl::InvalidArgumentError(
          fmt::format("is a list of more than {} bytes as a text", contract::kMaxArgBytes));
    }
  }
  return out + "]";
}

}  // namespace muster::client::skypilot
