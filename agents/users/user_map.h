// Which user of a cluster a user of Muster is.
#ifndef MUSTER_AGENTS_USERS_USER_MAP_H_
#define MUSTER_AGENTS_USERS_USER_MAP_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster::users {

// The text of a map has a line "MUSTER_USER: LOCAL_USER" for each user, and the first that fits
// counts. One '*' in the left part stands for any text, which "\1" in the right part repeats:
// "oidc:*@lab.org: \1". Empty lines, and those that begin with '#', say nothing.
//
// PERMISSION_DENIED: no line fits, or it leads to what cannot be the name of a user, or to root.
// INVALID_ARGUMENT: a line is none; its number is told.
absl::StatusOr<std::string> LocalUserIn(std::string_view map, std::string_view muster_user);

// Does the same with the file's text; without a file the names are the same. FAILED_PRECONDITION:
// others than root and this process's user may change the file, or it cannot be read.
absl::StatusOr<std::string> LocalUserOf(const std::string& file, std::string_view muster_user);

}  // namespace muster::users

#endif  // MUSTER_AGENTS_USERS_USER_MAP_H_
