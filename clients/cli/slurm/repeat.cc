#include "clients/cli/slurm/repeat.h"

#include <fmt/format.h>

#include <cstdint>

#include "absl/time/clock.h"
#include "clients/cli/exit_code.h"
#include "contract/characters.h"
#include "contract/parts.h"

namespace muster::cli {

absl::StatusOr<absl::Duration> ReadPause(const client::slurm::Settings& given) {
  const client::slurm::Setting* setting = given.Find("iterate");
  if (setting == nullptr) return absl::ZeroDuration();
  const auto seconds = contract::ParseNumber<uint32_t>(setting->value);
  if (seconds.has_value() && *seconds > 0) return absl::Seconds(*seconds);
  return absl::InvalidArgumentError(fmt::format("--iterate: {} is no number of seconds, 1 or more",
                                                contract::Quoted(setting->value)));
}

int Repeat(Session& session, absl::Duration pause, const std::function<int()>& show) {
  int code = show();
  while (code == kOk && pause > absl::ZeroDuration()) {
    session.terminal.Out("\n");
    absl::SleepFor(pause);
    code = show();
  }
  return code;
}

std::string DateLine(absl::Time now) {
  return absl::FormatTime("%a %b %d %H:%M:%S %Y\n", now, absl::LocalTimeZone());
}

}  // namespace muster::cli
