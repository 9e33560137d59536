#include "clients/cli/filter.h"

namespace muster::cli {

std::string FilterText(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace muster::cli
