#include "contract/signal_number.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string>

namespace muster::contract {
namespace {

// They are by number, from 1 on.
constexpr std::array<std::string_view, 31> kSignalNames = {
    "HUP",  "INT",  "QUIT", "ILL",    "TRAP",   "ABRT",  "BUS",  "FPE",  "KILL", "USR1", "SEGV",
    "USR2", "PIPE", "ALRM", "TERM",   "STKFLT", "CHLD",  "CONT", "STOP", "TSTP", "TTIN", "TTOU",
    "URG",  "XCPU", "XFSZ", "VTALRM", "PROF",   "WINCH", "IO",   "PWR",  "SYS"};

}  // namespace

std::optional<uint32_t> SignalNumber(std::string_view text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) {
    if (number < 1 || number > kMaxSignal) return std::nullopt;
    return number;
  }
  std::string name(text);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  constexpr std::string_view kPrefix = "SIG";
  if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
  const auto found = std::find(kSignalNames.begin(), kSignalNames.end(), name);
  if (found == kSignalNames.end()) return std::nullopt;
  return static_cast<uint32_t>(found - kSignalNames.begin()) + 1;
}

}  // namespace muster::contract
