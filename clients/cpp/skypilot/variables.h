// Variables of a task in its paths. Pure.
#ifndef MUSTER_CLIENTS_CPP_SKYPILOT_VARIABLES_H_
#define MUSTER_CLIENTS_CPP_SKYPILOT_VARIABLES_H_

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster::client::skypilot {

using Variables = std::map<std::string, std::string, std::less<>>;

// Returns `text` with $NAME and ${NAME} replaced, once: what a value holds is not looked at again.
// A name that is not among the variables stays as it is written, and "$$A" is "$" and A's value, as
// with SkyPilot. INVALID_ARGUMENT, where SkyPilot makes something else of it: a brace that is not
// closed, or the shell's ${NAME:-...}.
absl::StatusOr<std::string> Substitute(std::string_view text, const Variables& variables);

}  // namespace muster::client::skypilot

#endif  // MUSTER_CLIENTS_CPP_SKYPILOT_VARIABLES_H_
