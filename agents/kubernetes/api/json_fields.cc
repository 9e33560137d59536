#include "agents/kubernetes/api/json_fields.h"

#include <string_view>

#include "agents/core/json_members.h"

namespace muster::kubernetes {

const Json& At(const Json& object, const char* path) {
  const Json* value = &object;
  std::string_view rest = path;
  while (true) {
    const size_t slash = rest.find('/');
    value = &agents::Member(*value, rest.substr(0, slash));
    if (slash == rest.npos) return *value;
    rest.remove_prefix(slash + 1);
  }
}

std::string TextAt(const Json& object, const char* path) {
  return agents::TextOf(At(object, path));
}

int64_t NumberAt(const Json& object, const char* path, int64_t otherwise) {
  return agents::IntegerOf(At(object, path)).value_or(otherwise);
}

bool FlagAt(const Json& object, const char* path) { return agents::FlagOf(At(object, path)); }

std::optional<absl::Time> TimeAt(const Json& object, const char* path) {
  absl::Time time;
  if (!absl::ParseTime(absl::RFC3339_full, TextAt(object, path), &time, nullptr))
    return std::nullopt;
  return time;
}

}  // namespace muster::kubernetes
