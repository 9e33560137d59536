#include "clients/cpp/skypilot/variables.h"

#include <fmt/format.h>

#include "contract/characters.h"

namespace muster::client::skypilot {
namespace {

// Returns the name at the start of a text; empty if there is none.
std::string_view NameAt(std::string_view text) {
  size_t end = 0;
  const auto is_first = [](char c) { return contract::IsLetter(c) || c == '_'; };
  while (end < text.size() && (is_first(text[end]) || (end > 0 && contract::IsDigit(text[end])))) {
    ++end;
  }
  return text.substr(0, end);
}

}  // namespace

absl::StatusOr<std::string> Substitute(std::string_view text, const Variables& variables) {
  std::string out;
  while (!text.empty()) {
    const size_t dollar = text.find('$');
    out += text.substr(0, dollar);
    if (dollar == text.npos) break;
    text.remove_prefix(dollar + 1);
    const bool has_brace = text.starts_with('{');
    const std::string_view name = NameAt(text.substr(has_brace ? 1 : 0));
    const auto variable = variables.find(name);
    if (variable == variables.end()) {
      out += '$';
      continue;
    }
    text.remove_prefix(name.size() + (has_brace ? 1 : 0));
    if (has_brace && !text.starts_with('}')) {
      return absl::InvalidArgumentError(fmt::format(
          "${{{0} is not followed by a closing brace; write ${{{0}}}, the only form there is",
          name));
    }
    if (has_brace) text.remove_prefix(1);
    out += variable->second;
  }
  return out;
}

}  // namespace muster::client::skypilot
