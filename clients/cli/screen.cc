#include "clients/cli/screen.h"

#include <algorithm>

namespace muster::cli {

std::string Picture(std::string_view text, size_t height, bool is_first) {
  // The screen is cleared once; later, lines are written over each other, so that nothing flickers.
  std::string out = is_first ? "\x1b[2J\x1b[H" : "\x1b[H";
  size_t lines = 0;
  while (!text.empty() && (height == 0 || lines + 1 < height)) {
    const std::string_view line = text.substr(0, text.find('\n'));
    out.append(line).append("\x1b[K\n");
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ++lines;
  }
  return out + "\x1b[J";
}

}  // namespace muster::cli
