#include "agents/kubernetes/json_fields.h"

#include <string_view>

namespace muster::kubernetes {

const Json& At(const Json& object, const char* path) {
  static const Json none;
  const Json* value = &object;
  std::string_view rest = path;
  while (true) {
    if (!value->is_object()) return none;
    const size_t slash = rest.find('/');
    const auto found = value->find(std::string(rest.substr(0, slash)));
    if (found == value->end()) return none;
    value = &*found;
    if (slash == rest.npos) return *value;
    rest.remove_prefix(slash + 1);
  }
}

std::string TextAt(const Json& object, const char* path) {
  const Json& value = At(object, path);
  return value.is_string() ? value.get<std::string>() : std::string();
}

int64_t NumberAt(const Json& object, const char* path, int64_t otherwise) {
  const Json& value = At(object, path);
  return value.is_number_integer() ? value.get<int64_t>() : otherwise;
}

bool FlagAt(const Json& object, const char* path) {
  const Json& value = At(object, path);
  return value.is_boolean() && value.get<bool>();
}

std::optional<absl::Time> TimeAt(const Json& object, const char* path) {
  absl::Time time;
  if (!absl::ParseTime(absl::RFC3339_full, TextAt(object, path), &time, nullptr))
    return std::nullopt;
  return time;
}

}  // namespace muster::kubernetes
