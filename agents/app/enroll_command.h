// muster-agent enroll: gets the certificate of a cluster for the token of an invitation.
#ifndef MUSTER_AGENTS_APP_ENROLL_COMMAND_H_
#define MUSTER_AGENTS_APP_ENROLL_COMMAND_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster::agents {

struct EnrollOptions {
  std::string broker;  // as written: tls:HOST:PORT or HOST:PORT
  std::string token;
  std::string state_dir;  // made if it is missing
  absl::Duration patience = absl::Seconds(30);
};

// Makes a key, and stores it with the certificate and the CA in STATE/tls. The broker is known by
// the CA's fingerprint in the token before the token is sent to it. Returns what to tell the
// operator.
absl::StatusOr<std::string> Enroll(const EnrollOptions& options);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_APP_ENROLL_COMMAND_H_
