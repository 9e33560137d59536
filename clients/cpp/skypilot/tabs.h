// Tabs where SkyPilot's YAML reader takes blanks alone.
#ifndef MUSTER_CLIENTS_CPP_SKYPILOT_TABS_H_
#define MUSTER_CLIENTS_CPP_SKYPILOT_TABS_H_

#include <string_view>

#include "absl/status/status.h"

namespace muster::client::skypilot {

// yaml-cpp refuses most tabs in an indentation by itself. INVALID_ARGUMENT "FILE:LINE:COLUMN: ..."
// for those that it takes and libyaml, with which SkyPilot reads, does not: before a value on a
// line of its own, between a dash and its item, on a line without a value (but not inside a text of
// several lines), and at the beginning of the first line of a text under | or >. `text` must be
// YAML that yaml-cpp reads.
absl::Status CheckTabs(std::string_view file, std::string_view text);

}  // namespace muster::client::skypilot

#endif  // MUSTER_CLIENTS_CPP_SKYPILOT_TABS_H_
