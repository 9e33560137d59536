#include "clients/cpp/uploads/ignore_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <cctype>
#include <utility>

namespace muster::client {
namespace {

constexpr std::string_view kSpecial = "*?[\\";

// Spaces at the end count only after a backslash.
std::string_view WithoutTrailingSpaces(std::string_view line) {
  size_t end = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\') {
      i = std::min(i + 1, line.size() - 1);
      end = i + 1;
    } else if (line[i] != ' ') {
      end = i + 1;
    }
  }
  return line.substr(0, end);
}

using Bytes = std::bitset<256>;

std::string ByteExpression(unsigned char byte) { return fmt::format("\\x{{{:02x}}}", byte); }

// Takes the bytes of "[:alpha:]", whose name is given. False: there is no such class.
bool AddClass(std::string_view name, Bytes* bytes) {
  static constexpr std::pair<std::string_view, int (*)(int)> kClasses[] = {
      {"alnum", isalnum}, {"alpha", isalpha}, {"blank", isblank}, {"cntrl", iscntrl},
      {"digit", isdigit}, {"graph", isgraph}, {"lower", islower}, {"print", isprint},
      {"punct", ispunct}, {"space", isspace}, {"upper", isupper}, {"xdigit", isxdigit}};
  for (const auto& [known, is_in] : kClasses) {
    if (known != name) continue;
    for (int byte = 0; byte < 128; ++byte) {
      if (is_in(byte) != 0) bytes->set(static_cast<size_t>(byte));
    }
    return true;
  }
  return false;
}

// Reads one byte of brackets, which may follow a backslash.
std::optional<unsigned char> TakeByte(std::string_view glob, size_t* at) {
  if (*at < glob.size() && glob[*at] == '\\') ++*at;
  if (*at >= glob.size()) return std::nullopt;
  return static_cast<unsigned char>(glob[(*at)++]);
}

// Returns the expression of brackets, whose first byte is at `*at`; nullopt if they do not end, and
// then the whole pattern matches nothing.
std::optional<std::string> TakeBrackets(std::string_view glob, size_t* at) {
  Bytes bytes;
  ++*at;
  const bool is_negated = *at < glob.size() && (glob[*at] == '!' || glob[*at] == '^');
  if (is_negated) ++*at;
  for (bool is_first = true;; is_first = false) {
    if (*at >= glob.size()) return std::nullopt;
    if (glob[*at] == ']' && !is_first) break;
    if (glob.substr(*at, 2) == "[:") {
      const size_t end = glob.find(":]", *at + 2);
      if (end != std::string_view::npos) {
        if (!AddClass(glob.substr(*at + 2, end - *at - 2), &bytes)) return std::nullopt;
        *at = end + 2;
        continue;
      }
    }
    const auto low = TakeByte(glob, at);
    if (!low) return std::nullopt;
    auto high = low;
    const bool is_range = *at + 1 < glob.size() && glob[*at] == '-' && glob[*at + 1] != ']';
    if (is_range) {
      ++*at;
      high = TakeByte(glob, at);
      if (!high) return std::nullopt;
    }
    for (unsigned byte = *low; byte <= *high; ++byte) bytes.set(byte);
  }
  ++*at;
  if (is_negated) bytes.flip();
  bytes.reset('/');
  if (bytes.none()) return std::nullopt;
  std::string expression = "[";
  for (size_t byte = 0; byte < bytes.size(); ++byte) {
    if (bytes.test(byte)) expression += ByteExpression(static_cast<unsigned char>(byte));
  }
  return expression + "]";
}

// Returns the expression of the stars at `*at`. Two or more between slashes, or at an end, stand
// for any directories; elsewhere any number is like one.
std::string TakeStars(std::string_view glob, size_t* at) {
  const size_t begin = *at;
  while (*at < glob.size() && glob[*at] == '*') ++*at;
  const bool is_after = begin == 0 || glob[begin - 1] == '/';
  const bool is_last = *at == glob.size();
  if (*at - begin < 2 || !is_after || !(is_last || glob[*at] == '/')) return "[^/]*";
  if (is_last) return "(?s:.*)";
  ++*at;
  return "(?s:.*/)?";
}

// Returns nullopt if it matches nothing.
std::optional<std::string> ExpressionOf(std::string_view glob) {
  std::string expression;
  for (size_t at = 0; at < glob.size();) {
    switch (glob[at]) {
      case '*':
        expression += TakeStars(glob, &at);
        break;
      case '?':
        expression += "[^/]";
        ++at;
        break;
      case '[': {
        const auto brackets = TakeBrackets(glob, &at);
        if (!brackets) return std::nullopt;
        expression += *brackets;
        break;
      }
      case '\\':
        if (++at == glob.size()) return std::nullopt;
        [[fallthrough]];
      default:
        expression += ByteExpression(static_cast<unsigned char>(glob[at++]));
    }
  }
  return expression;
}

}  // namespace

std::optional<IgnorePattern> IgnorePattern::Parse(std::string_view line) {
  if (line.starts_with('#')) return std::nullopt;
  line = WithoutTrailingSpaces(line);
  IgnorePattern pattern;
  if (line.starts_with('!')) {
    pattern.is_negated_ = true;
    line.remove_prefix(1);
  }
  if (line.ends_with('/')) {
    pattern.directories_only_ = true;
    line.remove_suffix(1);
  }
  pattern.names_only_ = line.find('/') == std::string_view::npos;
  if (line.starts_with('/')) line.remove_prefix(1);
  if (line.empty()) return std::nullopt;
  if (line.find_first_of(kSpecial) == std::string_view::npos) {
    pattern.literal_ = line;
    return pattern;
  }
  const auto expression = ExpressionOf(line);
  if (!expression) return std::nullopt;
  RE2::Options options;
  options.set_encoding(RE2::Options::EncodingLatin1);
  options.set_log_errors(false);
  pattern.expression_ = std::make_unique<RE2>(*expression, options);
  if (!pattern.expression_->ok()) return std::nullopt;
  return pattern;
}

bool IgnorePattern::Matches(std::string_view path, bool is_directory) const {
  if (directories_only_ && !is_directory) return false;
  if (names_only_) path.remove_prefix(path.rfind('/') + 1);
  if (!expression_) return path == literal_;
  return RE2::FullMatch(re2::StringPiece(path.data(), path.size()), *expression_);
}

}  // namespace muster::client
