#include "agents/core/json_members.h"

namespace muster::agents {

using nlohmann::json;

const json& Member(const json& object, std::string_view name) {
  static const json none;
  if (!object.is_object()) return none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

std::string TextOf(const json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::optional<int64_t> IntegerOf(const json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  return value.get<int64_t>();
}

bool FlagOf(const json& value) { return value.is_boolean() && value.get<bool>(); }

}  // namespace muster::agents
