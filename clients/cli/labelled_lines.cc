#include "clients/cli/labelled_lines.h"

#include <cstddef>
#include <utility>

namespace muster::cli {
namespace {

// A line that is longer is cut, so that a log without line ends needs no memory: as long as a piece
// of a log.
constexpr size_t kMaxHeldBytes = 64 << 10;

}  // namespace

std::string LabelledLines::Next(std::string_view piece) {
  std::string out;
  while (!piece.empty()) {
    const size_t end = piece.find('\n');
    if (end == std::string_view::npos) {
      held_ += piece;
      if (held_.size() > kMaxHeldBytes) out += Finish();
      break;
    }
    out += label_ + held_;
    out += piece.substr(0, end + 1);
    held_.clear();
    piece.remove_prefix(end + 1);
  }
  return out;
}

std::string LabelledLines::Finish() {
  if (held_.empty()) return "";
  return label_ + std::exchange(held_, "") + "\n";
}

}  // namespace muster::cli
