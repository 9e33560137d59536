// Errors as the Connect protocol writes them: JSON with a code, a message and google.rpc details.
// Pure.
#ifndef MUSTER_BROKER_HTTP_ERROR_BODY_H_
#define MUSTER_BROKER_HTTP_ERROR_BODY_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace muster::http {

// {"code":"not_found","message":"...","details":[{"type":"google.rpc.ErrorInfo","value":"<base64>",
// "debug":{...}}]}. `debug` is the detail as JSON, for people.
std::string ErrorBody(const absl::Status& status);

// Returns the last message of a stream: {} or {"error":{...}}.
std::string EndOfStream(const absl::Status& status);

// Returns the text as a JSON string, in quotes. Bytes that are not UTF-8 become U+FFFD.
std::string JsonString(std::string_view text);

}  // namespace muster::http

#endif  // MUSTER_BROKER_HTTP_ERROR_BODY_H_
