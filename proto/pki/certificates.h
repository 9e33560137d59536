// Makes keys and certificates as PEM: a CA of one broker, the broker's own certificate, and those
// of the clusters, which agents ask for. Pure except for the random numbers of keys and serials;
// any thread. All keys are EC P-256.
//
// A cluster's certificate names it twice: as its subject's CN, for people, and as the URI
// muster://cluster/NAME, which alone counts.
#ifndef MUSTER_PROTO_PKI_CERTIFICATES_H_
#define MUSTER_PROTO_PKI_CERTIFICATES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster::pki {

// The most bytes of a file with certificates or keys, and of a request.
inline constexpr size_t kMaxPemBytes = 256 << 10;

// Both as PEM.
struct Identity {
  std::string key;
  std::string certificate;  // followed by those that lead to its CA, if there are more
};

struct Validity {
  absl::Time from;
  absl::Time until;
};

// A certificate, read.
struct Certificate {
  std::string common_name;
  std::string cluster;      // empty: the certificate is no cluster's
  std::string serial;       // lower-case hexadecimal digits
  std::string fingerprint;  // SHA-256 of its bytes, 64 of 0-9 and a-f
  Validity validity;
  bool is_self_signed = false;
};

std::string MakeKey();

Identity MakeCa(std::string_view name, const Validity& validity);

// Makes a certificate for a server that has `key`. `names`: at least one host name or IP address.
// The CA's certificate follows it. INVALID_ARGUMENT: a name is neither, or the CA or the key cannot
// be read.
absl::StatusOr<std::string> MakeServerCertificate(const Identity& ca, std::string_view key,
                                                  const std::vector<std::string>& names,
                                                  const Validity& validity);
// The names in a server's certificate, as MakeServerCertificate takes them.
absl::StatusOr<std::vector<std::string>> ServerNames(std::string_view certificate);

// Makes a request for a certificate (CSR). INVALID_ARGUMENT: the key cannot be read.
absl::StatusOr<std::string> MakeRequest(std::string_view key);

// Signs a cluster's request. Only its public key is taken over; the rest of a request is its
// maker's word. INVALID_ARGUMENT: it is none, its signature is not its own key's, or the key is not
// EC P-256.
absl::StatusOr<std::string> SignRequest(const Identity& ca, std::string_view request,
                                        std::string_view cluster, const Validity& validity);

// Returns the first certificate of a text. INVALID_ARGUMENT: there is none that is whole.
absl::StatusOr<Certificate> ReadCertificate(std::string_view pem);
// Returns all certificates of a text, one by one. INVALID_ARGUMENT: none, or one that is not whole.
absl::StatusOr<std::vector<std::string>> SplitCertificates(std::string_view pem);

// Returns whether the key is that of the first certificate. INVALID_ARGUMENT says what is wrong.
absl::Status CheckPair(const Identity& identity);

// Certificates are valid from this long before now, for clocks that are behind.
inline constexpr absl::Duration kClockSkew = absl::Minutes(15);

enum class Purpose { kServer, kClient };

// Verifies the first certificate of `chain` by the others and by the CAs in `anchors`. `host` is
// the name or IP address that it must have; empty means any. UNAUTHENTICATED says what is wrong:
// signed by another CA, expired, not valid yet, another name, another purpose. INVALID_ARGUMENT:
// one of the texts holds no certificate.
absl::Status Verify(std::string_view chain, std::string_view anchors, Purpose purpose,
                    absl::Time now, std::string_view host = {});

}  // namespace muster::pki

#endif  // MUSTER_PROTO_PKI_CERTIFICATES_H_
