// A time of YAML 1.1 as Python's datetime writes it. Pure.
#ifndef MUSTER_CLIENTS_CPP_SKYPILOT_PYTHON_TIME_H_
#define MUSTER_CLIENTS_CPP_SKYPILOT_PYTHON_TIME_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster::client::skypilot {

// str() of what PyYAML makes of a text in the form of a time: "2024-01-02T03:04:05Z" becomes
// "2024-01-02 03:04:05+00:00", "2024-01-02" stays. INVALID_ARGUMENT: no calendar has it, or its
// zone is a day or more from UTC, at which Python stops.
absl::StatusOr<std::string> PythonTime(std::string_view text);

}  // namespace muster::client::skypilot

#endif  // MUSTER_CLIENTS_CPP_SKYPILOT_PYTHON_TIME_H_
