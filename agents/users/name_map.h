// Reads files that an operator keeps, of lines "NAME: WHAT", in which the first line that fits a
// name says what it is.
#ifndef MUSTER_AGENTS_USERS_NAME_MAP_H_
#define MUSTER_AGENTS_USERS_NAME_MAP_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster::users {

// Both parts are without spaces around them, and not empty.
struct MapLine {
  std::string left;  // with one '*' at most
  std::string right;
};

// Reads the line of that number; nothing if it is empty, or begins with '#'. The last colon parts
// it. INVALID_ARGUMENT: it is none of that `form`.
absl::StatusOr<std::optional<MapLine>> ParseMapLine(std::string_view text, size_t number,
                                                    std::string_view form);

// Returns the right part for a name; nothing if the line does not fit. '*' stands for any text,
// which "\1" in the right part repeats.
std::optional<std::string> RightPartFor(const MapLine& line, std::string_view name);

// Returns the text of the file of that setting. FAILED_PRECONDITION: others than root and this
// process's user may change the file, or it cannot be read.
absl::StatusOr<std::string> ReadMap(std::string_view setting, const std::string& file);

}  // namespace muster::users

#endif  // MUSTER_AGENTS_USERS_NAME_MAP_H_
