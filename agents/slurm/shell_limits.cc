#include "agents/slurm/shell_limits.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "contract/parts.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

constexpr std::string_view kUmask = "SLURM_UMASK";
constexpr std::string_view kPrefix = "SLURM_RLIMIT_";
constexpr uint32_t kMaxUmask = 0777;

// A limit as bash's ulimit knows it. RSS is not here: Slurm sets it by the job's memory, whatever
// the shell has.
struct Limit {
  std::string_view name;
  char letter = 0;
  uint64_t unit = 1;  // what ulimit counts in
};
constexpr std::array kShellLimits = {
    Limit{"AS", 'v', 1024},   Limit{"CORE", 'c', 1024},  Limit{"CPU", 't'},
    Limit{"DATA", 'd', 1024}, Limit{"FSIZE", 'f', 1024}, Limit{"MEMLOCK", 'l', 1024},
    Limit{"NOFILE", 'n'},     Limit{"NPROC", 'u'},       Limit{"STACK", 's', 1024}};

bool IsListed(std::string_view list, std::string_view name) {
  const auto names = contract::Split(list, ',');
  return std::any_of(names.begin(), names.end(), [&](std::string_view one) {
    constexpr std::string_view kLong = "RLIMIT_";
    if (one.starts_with(kLong)) one.remove_prefix(kLong.size());
    return one == name || one == "ALL";
  });
}

// Returns one line of the file; empty if the limit is none, or the cluster keeps its own.
std::string LineOf(const Limit& limit, std::string_view value, bool is_taken) {
  const bool is_asked = value.starts_with('U');
  if (is_asked) value.remove_prefix(1);
  const auto number = contract::ParseNumber<uint64_t>(value);
  if (!number.has_value() || (!is_asked && !is_taken)) return "";
  const bool is_none = *number == std::numeric_limits<uint64_t>::max();
  return fmt::format("{} {} {} {} {:d}\n", limit.letter,
                     is_none ? std::string("unlimited") : fmt::format("{}", *number / limit.unit),
                     limit.name, is_none ? std::string("unlimited") : fmt::format("{}", *number),
                     is_asked);
}

}  // namespace

std::set<std::string> TakenLimits(std::string_view all_of, std::string_view all_but) {
  const bool is_of = all_of != "(null)" && !all_of.empty();
  std::set<std::string> taken;
  for (const Limit& limit : kShellLimits) {
    if (is_of ? IsListed(all_of, limit.name) : !IsListed(all_but, limit.name))
      taken.emplace(limit.name);
  }
  return taken;
}

bool IsShellLimit(std::string_view variable) {
  return variable == kUmask || variable.starts_with(kPrefix);
}

std::string LimitsFile(const contract::ShellVariables& variables,
                       const std::set<std::string>& taken) {
  const auto umask = variables.find(std::string(kUmask));
  if (umask == variables.end()) return "";
  const bool is_octal = !umask->second.empty() &&
                        umask->second.find_first_not_of("01234567") == std::string::npos &&
                        umask->second.size() <= 4;
  const auto mask = is_octal ? std::stoul(umask->second, nullptr, 8) : kMaxUmask + 1;
  if (mask > kMaxUmask) return "";
  std::string file = fmt::format("umask {:04o}\n", mask);
  for (const Limit& limit : kShellLimits) {
    const auto found = variables.find(fmt::format("{}{}", kPrefix, limit.name));
    if (found != variables.end())
      file += LineOf(limit, found->second, taken.contains(std::string(limit.name)));
  }
  return file;
}

}  // namespace muster::slurm
