// OpenSSL's objects from PEM and back. For the files of this folder.
#ifndef MUSTER_PROTO_PKI_PEM_H_
#define MUSTER_PROTO_PKI_PEM_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "pki/openssl.h"

namespace muster::pki {

// Ends the process: only a want of memory or of random numbers makes these calls fail.
void Must(bool done);

absl::Status Invalid(std::string_view text);

// INVALID_ARGUMENT: there is none that is whole.
absl::StatusOr<Key> ReadKey(std::string_view pem);
absl::StatusOr<X509Cert> ReadX509(std::string_view pem);
// Reads all of them, at least one.
absl::StatusOr<X509Stack> ReadAll(std::string_view pem);

std::string ToPem(X509* certificate);
std::string ToPem(EVP_PKEY* key);
std::string ToPem(X509_REQ* request);

absl::Time TimeOf(const ASN1_TIME* time);

}  // namespace muster::pki

#endif  // MUSTER_PROTO_PKI_PEM_H_
