// Holds the broker's key and certificates for the network, and those that it trusts.
#ifndef MUSTER_BROKER_AUTH_SERVER_IDENTITY_H_
#define MUSTER_BROKER_AUTH_SERVER_IDENTITY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/auth/ca_directory.h"

namespace muster::broker {

// As the settings say; empty: not set.
struct IdentityFiles {
  std::string ca_directory;  // required, but there may be nothing
  std::string certificate = {};
  std::string key = {};
  std::string client_ca = {};
};

struct ServerIdentity {
  std::string certificate;  // the file
  std::string key;          // the file
  bool is_own;              // of the CA directory: the broker renews it
};

// Chooses the files. FAILED_PRECONDITION, NO_IDENTITY: there are none, or they cannot be used; the
// message says how to get them.
absl::StatusOr<ServerIdentity> FindServerIdentity(const IdentityFiles& files, absl::Time now);

// Returns the CA's certificate at the end of the served ones, as PEM. FAILED_PRECONDITION, NO_CA:
// the file does not end with a CA's own certificate.
absl::StatusOr<std::string> ServedCaCertificate(const std::string& certificate_file);
// Returns its fingerprint. Errors likewise.
absl::StatusOr<std::string> ServedCa(const std::string& certificate_file);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_AUTH_SERVER_IDENTITY_H_
