#include "contract/slurm_signal.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "fmt/format.h"

namespace muster::contract {
namespace {

constexpr uint32_t kMaxSeconds = 65535;  // what Slurm counts in

struct NamedSignal {
  std::string_view name;
  std::string_view number;  // Linux's, alike on all of its machines
};
constexpr std::array kNames = {
    NamedSignal{"HUP", "1"},   NamedSignal{"INT", "2"},   NamedSignal{"QUIT", "3"},
    NamedSignal{"ABRT", "6"},  NamedSignal{kKill, "9"},   NamedSignal{"USR1", "10"},
    NamedSignal{"USR2", "12"}, NamedSignal{"ALRM", "14"}, NamedSignal{"TERM", "15"}};

bool TakePrefix(std::string_view prefix, std::string_view* text) {
  if (!text->starts_with(prefix)) return false;
  text->remove_prefix(prefix.size());
  return true;
}

}  // namespace

std::optional<SlurmSignal> ParseSlurmSignal(std::string_view text) {
  SlurmSignal signal;
  signal.in_reservation = TakePrefix("R", &text);
  signal.command_only = TakePrefix("B:", &text);
  if (signal.in_reservation && !signal.command_only) TakePrefix(":", &text);
  if (const size_t at = text.find('@'); at != text.npos) {
    const std::string_view number = text.substr(at + 1);
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), signal.seconds);
    if (error != std::errc() || end != number.data() + number.size() ||
        signal.seconds > kMaxSeconds) {
      return std::nullopt;
    }
    text = text.substr(0, at);
  }
  TakePrefix("SIG", &text);
  const auto found = std::find_if(kNames.begin(), kNames.end(), [&](const NamedSignal& one) {
    return one.name == text || one.number == text;
  });
  if (found == kNames.end()) return std::nullopt;
  signal.name = found->name;
  return signal;
}

std::string FormatSlurmSignal(const SlurmSignal& signal) {
  const std::string_view to = signal.command_only     ? signal.in_reservation ? "RB:" : "B:"
                              : signal.in_reservation ? "R:"
                                                      : "";
  return fmt::format("{}{}@{}", to, signal.name, signal.seconds);
}

}  // namespace muster::contract
