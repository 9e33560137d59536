// The names of errors in the Connect protocol, and their statuses in HTTP. Pure.
//
// https://connectrpc.com/docs/protocol/#error-codes
#ifndef MUSTER_BROKER_HTTP_CODES_H_
#define MUSTER_BROKER_HTTP_CODES_H_

#include <string_view>

#include "absl/status/status.h"

namespace muster::http {

// Returns a name such as "invalid_argument"; a code that is not one of gRPC's is "unknown".
std::string_view ConnectCode(absl::StatusCode code);
// Returns 400 for INVALID_ARGUMENT, for example; OK is 200.
int HttpStatus(absl::StatusCode code);
// Returns the words after a status in the first line of an answer.
std::string_view ReasonPhrase(int http_status);

}  // namespace muster::http

#endif  // MUSTER_BROKER_HTTP_CODES_H_
