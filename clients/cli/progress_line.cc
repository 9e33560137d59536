#include "clients/cli/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/time/clock.h"
#include "contract/units.h"

namespace muster::cli {
namespace {

// Transfers that end sooner need no line, and a rate needs some time.
constexpr absl::Duration kQuietBegin = absl::Seconds(1);
// More often nobody reads.
constexpr absl::Duration kBetweenLines = absl::Milliseconds(250);

// To three digits or so: "1.2GiB" becomes no longer number with each byte.
std::string Rounded(double bytes) {
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f}{}", bytes, unit == 0 || bytes >= 10 ? 0 : 1, kUnits[unit]);
}

}  // namespace

std::string ProgressText(std::string_view what, uint64_t done, uint64_t all,
                         absl::Duration elapsed) {
  const double seconds = std::max(0.001, absl::ToDoubleSeconds(elapsed));
  const double rate = static_cast<double>(done) / seconds;
  const std::string speed = Rounded(rate) + "/s";
  if (all == 0) return fmt::format("{}: {}, {}", what, Rounded(static_cast<double>(done)), speed);
  const uint64_t part = std::min(done, all);
  std::string text = fmt::format("{}: {}%, {}", what, part * 100 / all, speed);
  if (done == 0) return text;
  const auto left = absl::Seconds(static_cast<int64_t>(static_cast<double>(all - part) / rate) + 1);
  if (part < all) text += fmt::format(", {} left", contract::FormatDuration(left));
  return text;
}

ProgressLine::ProgressLine(Terminal* terminal, std::string what)
    : terminal_(*terminal), what_(std::move(what)), begin_(absl::Now()), last_(begin_) {}

void ProgressLine::Show(uint64_t done, uint64_t all) {
  const absl::Time now = absl::Now();
  const bool is_wanted = terminal_.err_is_terminal() && !terminal_.is_quiet() &&
                         now - begin_ >= kQuietBegin && now - last_ >= kBetweenLines;
  if (!is_wanted) return;
  last_ = now;
  is_shown_ = true;
  terminal_.Err(fmt::format("\rmuster: {}\x1b[K", ProgressText(what_, done, all, now - begin_)));
}

void ProgressLine::Clear() {
  if (std::exchange(is_shown_, false)) terminal_.Err("\r\x1b[K");
}

}  // namespace muster::cli
