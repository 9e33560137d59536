// Keeps the agent's certificate: STATE/tls, which muster-agent enroll fills.
//
//   identity.pem   the key, and the certificate of the cluster; one file, so that both change at
//                  once
//   ca.pem         the CA by which the agent knows its broker
#ifndef MUSTER_AGENTS_CORE_IDENTITY_H_
#define MUSTER_AGENTS_CORE_IDENTITY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "pki/certificates.h"

namespace grpc {
class ChannelCredentials;
}

namespace muster::agents {

// An address of a broker, and how the agent shows there who it is.
struct BrokerEnd {
  std::string target;              // as gRPC takes it: rpc::ParseAddress makes it
  std::string tls_directory = {};  // of an Identity; empty: no TLS
};

struct Identity {
  pki::Identity own;
  std::string ca;
};

// FAILED_PRECONDITION: there is none that is whole; the message says how to get one.
absl::StatusOr<Identity> ReadIdentity(const std::string& directory);
// Makes the directory if it is missing.
absl::Status WriteIdentity(const std::string& directory, const Identity& identity);
// FAILED_PRECONDITION: the certificate is of another cluster or has expired.
absl::Status CheckIdentity(const Identity& identity, const std::string& cluster, absl::Time now);

// Makes what the next connection shows. The files are read each time, so that a renewed certificate
// needs no restart.
std::shared_ptr<grpc::ChannelCredentials> CredentialsFor(const BrokerEnd& broker);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_IDENTITY_H_
