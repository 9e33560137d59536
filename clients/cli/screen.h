// Text that is shown again and again in the same place of a terminal.
#ifndef MUSTER_CLIENTS_CLI_SCREEN_H_
#define MUSTER_CLIENTS_CLI_SCREEN_H_

#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "clients/cli/terminal.h"

namespace muster::cli {

// The time from one picture to the next: people see what happens, and the broker hardly notices.
inline constexpr absl::Duration kBetweenPictures = absl::Seconds(2);

// The bytes that make a terminal show these lines in place of the last picture. `height`: the
// terminal's lines, of which the last one stays free; 0: not known.
std::string Picture(std::string_view text, size_t height, bool is_first);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SCREEN_H_
