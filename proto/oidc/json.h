// Reads JSON of others: tokens, and what a provider answers. Pure; any thread.
#ifndef MUSTER_PROTO_OIDC_JSON_H_
#define MUSTER_PROTO_OIDC_JSON_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace muster::oidc {

// No object of the protocol is nested deeper.
inline constexpr int kMaxJsonDepth = 16;

// Returns the object that the text is. Nothing: it is none, it has a name twice in one object, so
// that two readers might see two different things, or it is nested too deeply.
std::optional<nlohmann::json> ParseObject(std::string_view text);

// Returns the member of this name if it is a text that is not empty, and empty otherwise.
std::string TextMember(const nlohmann::json& object, const char* name);

}  // namespace muster::oidc

#endif  // MUSTER_PROTO_OIDC_JSON_H_
