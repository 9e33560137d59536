// Turns messages into JSON and back, by protobuf's own mapping. Pure; any thread.
//
// https://protobuf.dev/programming-guides/json/
#ifndef MUSTER_BROKER_HTTP_JSON_CODEC_H_
#define MUSTER_BROKER_HTTP_JSON_CODEC_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster::http {

// `type` is the full name of a message. Returns INVALID_ARGUMENT, BAD_JSON if the text is not its
// JSON. A field that the message does not have is an error, because it may be misspelt.
absl::StatusOr<std::string> FromJson(std::string_view type, std::string_view json);

// Leaves out fields with their default value. Returns INTERNAL if the bytes are not such a message.
absl::StatusOr<std::string> ToJson(std::string_view type, std::string_view bytes);

}  // namespace muster::http

#endif  // MUSTER_BROKER_HTTP_JSON_CODEC_H_
