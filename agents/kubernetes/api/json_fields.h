// Fields of the API server's objects, each with what counts if it is missing or of another type:
// what an object says is never trusted to be there.
#ifndef MUSTER_AGENTS_KUBERNETES_API_JSON_FIELDS_H_
#define MUSTER_AGENTS_KUBERNETES_API_JSON_FIELDS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/time/time.h"

namespace muster::kubernetes {

using Json = nlohmann::json;

// Returns the value behind "a/b/c"; null if there is none.
const Json& At(const Json& object, const char* path);
std::string TextAt(const Json& object, const char* path);
int64_t NumberAt(const Json& object, const char* path, int64_t otherwise = 0);
bool FlagAt(const Json& object, const char* path);
// RFC 3339, as the API server writes times.
std::optional<absl::Time> TimeAt(const Json& object, const char* path);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_API_JSON_FIELDS_H_
