// Reads the JSON in schedulers' answers. A value that is missing, or of another type than the
// reader expects, reads like one that is not there: no answer is trusted to have what it should.
#ifndef MUSTER_AGENTS_CORE_JSON_MEMBERS_H_
#define MUSTER_AGENTS_CORE_JSON_MEMBERS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace muster::agents {

// Returns a member of an object; null if there is none, or if it is no object.
const nlohmann::json& Member(const nlohmann::json& object, std::string_view name);
// Empty if it is no text.
std::string TextOf(const nlohmann::json& value);
// Returns nothing if it is no whole number.
std::optional<int64_t> IntegerOf(const nlohmann::json& value);
// Returns whether it is true.
bool FlagOf(const nlohmann::json& value);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_JSON_MEMBERS_H_
