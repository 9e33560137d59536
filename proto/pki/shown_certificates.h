// The certificates that a TLS server shows, before anything is known of it.
#ifndef MUSTER_PROTO_PKI_SHOWN_CERTIFICATES_H_
#define MUSTER_PROTO_PKI_SHOWN_CERTIFICATES_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster::pki {

// Returns them as PEM. Nothing about them is verified, and nothing is sent. `place`: HOST:PORT.
// UNAVAILABLE: nobody answers there. FAILED_PRECONDITION: something does, and not by TLS.
absl::StatusOr<std::string> ShownCertificates(const std::string& place, absl::Duration patience);

// Finds the CA with this fingerprint. UNAUTHENTICATED: it is not there. Others as above.
absl::StatusOr<std::string> ShownCa(const std::string& place, const std::string& fingerprint,
                                    absl::Duration patience);

// Verifies what the server shows by the CAs in `anchors`, and that it has the place's name.
// UNAUTHENTICATED says what is wrong, as in Verify. Others as above.
absl::Status CheckShownCertificates(const std::string& place, std::string_view anchors,
                                    absl::Duration patience);

}  // namespace muster::pki

#endif  // MUSTER_PROTO_PKI_SHOWN_CERTIFICATES_H_
