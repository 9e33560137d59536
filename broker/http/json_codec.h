// Messages as JSON, as protobuf maps the one to the other. Pure; any thread.
//
// https://protobuf.dev/programming-guides/json/
#ifndef MUSTER_BROKER_HTTP_JSON_CODEC_H_
#define MUSTER_BROKER_HTTP_JSON_CODEC_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster::http {

// `type` is the full name of a message. INVALID_ARGUMENT, BAD_JSON: the text is not its JSON; a
// field that the message does not have is an error, because it may be a mistyped one.
absl::StatusOr<std::string> FromJson(std::string_view type, std::string_view json);

// Fields with their default are left out. INTERNAL: the bytes are no such message.
absl::StatusOr<std::string> ToJson(std::string_view type, std::string_view bytes);

}  // namespace muster::http

#endif  // MUSTER_BROKER_HTTP_JSON_CODEC_H_
