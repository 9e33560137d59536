#include "agents/hosts/shell_quote.h"

#include <utility>

#include "fmt/format.h"

namespace muster::hosts {

absl::StatusOr<std::string> ShellQuote(std::string_view text) {
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return absl::InvalidArgumentError(
        fmt::format("text for a shell has a NUL byte at offset {}; remove it", nul));
  }
  // A shell reads every byte between single quotes as itself, but cannot read a single quote there:
  // that one goes between double quotes.
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\"'\"'";
    } else {
      quoted += c;
    }
  }
  quoted += '\'';
  return quoted;
}

std::string Quoted(std::string_view text) {
  absl::StatusOr<std::string> quoted = ShellQuote(text);
  return quoted.ok() ? *std::move(quoted) : std::string("''");
}

}  // namespace muster::hosts
