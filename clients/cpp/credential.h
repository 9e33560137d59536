// A credential that is renewed by itself, such as a login at an identity provider.
#ifndef MUSTER_CLIENTS_CPP_CREDENTIAL_H_
#define MUSTER_CLIENTS_CPP_CREDENTIAL_H_

#include <string>

#include "absl/status/status.h"

namespace muster::client {

// Any thread may use it. Both methods may wait for the network.
class Credential {
 public:
  virtual ~Credential() = default;
  // Returns the text behind "Bearer ". One that is about to end is renewed first; if that fails, it
  // is given as it is, and the broker decides.
  virtual std::string Token() = 0;
  // Gets another one in the place of `refused`, which the broker did not accept. OK: Token gives
  // it. An error says what to do.
  virtual absl::Status Renew(const std::string& refused) = 0;
};

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_CREDENTIAL_H_
