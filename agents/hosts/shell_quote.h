// The one function that turns text into shell source.
#ifndef MUSTER_AGENTS_HOSTS_SHELL_QUOTE_H_
#define MUSTER_AGENTS_HOSTS_SHELL_QUOTE_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster::hosts {

// A word that any POSIX shell reads back as exactly this text, whatever bytes are in it.
// INVALID_ARGUMENT: the text holds a NUL byte, which no argument can carry.
absl::StatusOr<std::string> ShellQuote(std::string_view text);
// Quotes a text that was checked for NUL bytes before; gives "''" if it holds one after all.
std::string Quoted(std::string_view text);

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_SHELL_QUOTE_H_
