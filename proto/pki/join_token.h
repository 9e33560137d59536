// Writes and reads the token of an invitation: a secret, and the fingerprint of the CA by which an
// agent knows the broker before it trusts anything else. Pure except for the random number.
#ifndef MUSTER_PROTO_PKI_JOIN_TOKEN_H_
#define MUSTER_PROTO_PKI_JOIN_TOKEN_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster::pki {

// "muster-join-SECRET-FINGERPRINT", where SECRET is 32 hexadecimal digits made at random.
std::string MakeJoinToken(std::string_view ca_fingerprint);

// Returns the fingerprint in a token. INVALID_ARGUMENT: the text has another form.
absl::StatusOr<std::string> FingerprintIn(std::string_view token);

}  // namespace muster::pki

#endif  // MUSTER_PROTO_PKI_JOIN_TOKEN_H_
