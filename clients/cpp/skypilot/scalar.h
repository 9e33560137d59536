// Reads a scalar of YAML 1.1 as PyYAML does, which SkyPilot uses. Pure.
#ifndef MUSTER_CLIENTS_CPP_SKYPILOT_SCALAR_H_
#define MUSTER_CLIENTS_CPP_SKYPILOT_SCALAR_H_

#include <yaml-cpp/yaml.h>

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster::client::skypilot {

enum class ScalarKind { kNull, kBool, kInteger, kFloat, kTime, kText };

struct Scalar {
  ScalarKind kind = ScalarKind::kNull;
  std::string text;   // as Python's str() writes it: "True", "8" of 010, "0.1" of 0.10
  double number = 0;  // of kInteger and kFloat
};

// The node must be a scalar or null. Quoted text is text. A whole number beyond 64 bits is as it is
// written, and so is a time that no calendar has.
Scalar ReadScalar(const YAML::Node& node);

// Returns what a message calls it: "a number", "True or False", ...
std::string_view KindName(ScalarKind kind);

// Writes a value as Python's str() does: a scalar's text, or a list of scalars as "[1, 'a']".
// INVALID_ARGUMENT: it is null, a mapping, a time that no calendar has, a list with a time or with
// more than scalars in it, or longer than a variable may be.
absl::StatusOr<std::string> PythonText(const YAML::Node& node);

}  // namespace muster::client::skypilot

#endif  // MUSTER_CLIENTS_CPP_SKYPILOT_SCALAR_H_
