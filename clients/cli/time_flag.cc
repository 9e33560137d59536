#include "clients/cli/time_flag.h"

#include <fmt/format.h>

#include "absl/time/clock.h"
#include "clients/cli/options.h"
#include "contract/characters.h"
#include "contract/text.h"
#include "contract/units.h"

namespace muster::cli {
namespace {

// A time in RFC 3339, or a duration before now.
absl::Time ReadTime(const std::string& flag, const std::string& text) {
  absl::Time time;
  std::string error;
  if (absl::ParseTime(absl::RFC3339_full, text, &time, &error)) return time;
  const absl::StatusOr<absl::Duration> before = contract::ParseDuration(text);
  if (before.ok()) return absl::Now() - *before;
  throw CLI::ValidationError(
      flag, fmt::format("{} is neither a duration, e.g. 2d, nor a time, e.g. 2026-01-31T09:00:00Z",
                        contract::Quoted(text)));
}

}  // namespace

void AddTime(CLI::App* verb, const std::string& flag, const std::string& description,
             absl::Time* out) {
  AddText(verb, flag, "TIME", description,
          [flag, out](const std::string& text) { *out = ReadTime(flag, text); });
}

}  // namespace muster::cli
