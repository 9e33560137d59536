#include "oidc/json.h"

#include <set>
#include <vector>

namespace muster::oidc {

using nlohmann::json;

std::optional<json> ParseObject(std::string_view text) {
  std::vector<std::set<std::string>> names;  // of the objects that are open
  bool is_good = true;
  const auto look = [&](int depth, json::parse_event_t event, json& value) {
    switch (event) {
      case json::parse_event_t::object_start:
        names.emplace_back();
        break;
      case json::parse_event_t::object_end:
        names.pop_back();
        break;
      case json::parse_event_t::key:
        is_good = is_good && names.back().insert(value.get<std::string>()).second;
        break;
      default:
        break;
    }
    is_good = is_good && depth <= kMaxJsonDepth;
    return true;
  };
  json parsed = json::parse(text.begin(), text.end(), look, /*allow_exceptions=*/false);
  if (!is_good || !parsed.is_object()) return std::nullopt;
  return parsed;
}

std::string TextMember(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace muster::oidc
