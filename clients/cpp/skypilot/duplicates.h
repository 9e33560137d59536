// Finds faults of a YAML text wherever they stand, whether or not their field is looked at. Pure.
#ifndef MUSTER_CLIENTS_CPP_SKYPILOT_DUPLICATES_H_
#define MUSTER_CLIENTS_CPP_SKYPILOT_DUPLICATES_H_

#include <string_view>

#include "absl/status/status.h"

namespace muster::client::skypilot {

// The text must be YAML. INVALID_ARGUMENT, "FILE:LINE:COLUMN: ..." for each: a name that stands
// twice in one mapping, with both lines, in quotes or not; a tag that YAML's own data do not have
// (!!python/object, !!set). Aliases are not followed, so that time and memory go with the text.
absl::Status CheckDuplicates(std::string_view file, std::string_view text);

}  // namespace muster::client::skypilot

#endif  // MUSTER_CLIENTS_CPP_SKYPILOT_DUPLICATES_H_
