#include "broker/auth/server_identity.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "contract/errors.h"
#include "contract/text.h"
#include "daemon/read_file.h"
#include "pki/certificates.h"

namespace muster::broker {
namespace {

absl::Status NoIdentity(std::string_view text) {
  return contract::Error(absl::StatusCode::kFailedPrecondition, "NO_IDENTITY", text);
}

absl::Status Check(const ServerIdentity& identity, absl::Time now) {
  const absl::StatusOr<std::string> key = ReadFile(identity.key, pki::kMaxPemBytes);
  if (!key.ok()) return key.status();
  const absl::StatusOr<std::string> certificate = ReadFile(identity.certificate, pki::kMaxPemBytes);
  if (!certificate.ok()) return certificate.status();
  if (absl::Status status = pki::CheckPair({*key, *certificate}); !status.ok()) return status;
  const absl::StatusOr<pki::Certificate> read = pki::ReadCertificate(*certificate);
  if (!read.ok()) return read.status();
  if (read->validity.until <= now) {
    return absl::FailedPreconditionError(ToAbsl(fmt::format(
        "the certificate has expired on {}",
        absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", read->validity.until, absl::UTCTimeZone()))));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ServerIdentity> FindServerIdentity(const IdentityFiles& files, absl::Time now) {
  if (files.certificate.empty() != files.key.empty()) {
    return NoIdentity("tls.certificate and tls.key go together; set both, or none of them");
  }
  const CaDirectory ca(files.ca_directory);
  ServerIdentity identity{files.certificate, files.key, /*is_own=*/false};
  if (files.certificate.empty()) {
    if (!ca.Exists()) {
      return NoIdentity(
          "tls.listen needs a certificate, by which agents know the broker; run muster-broker init "
          "once, or set tls.certificate and tls.key");
    }
    identity = {ca.server_certificate(), ca.server_key(), /*is_own=*/true};
  }
  if (absl::Status status = Check(identity, now); !status.ok()) {
    return NoIdentity(fmt::format(
        "{} and {} cannot be served: {}; {}", identity.certificate, identity.key,
        ToStd(status.message()),
        identity.is_own ? "bring the directory back from a copy" : "put the right files there"));
  }
  return identity;
}

absl::StatusOr<std::string> ServedCaCertificate(const std::string& certificate_file) {
  const absl::StatusOr<std::string> pem = ReadFile(certificate_file, pki::kMaxPemBytes);
  if (!pem.ok()) return pem.status();
  absl::StatusOr<std::vector<std::string>> chain = pki::SplitCertificates(*pem);
  if (!chain.ok()) return chain.status();
  const absl::StatusOr<pki::Certificate> last = pki::ReadCertificate(chain->back());
  if (!last.ok()) return last.status();
  if (last->is_self_signed) return std::move(chain->back());
  return contract::Error(
      absl::StatusCode::kFailedPrecondition, "NO_CA",
      fmt::format("{} does not end with the certificate of its CA, by which new callers know the "
                  "broker; add it there",
                  certificate_file));
}

absl::StatusOr<std::string> ServedCa(const std::string& certificate_file) {
  const absl::StatusOr<std::string> ca = ServedCaCertificate(certificate_file);
  if (!ca.ok()) return ca.status();
  const absl::StatusOr<pki::Certificate> read = pki::ReadCertificate(*ca);
  if (!read.ok()) return read.status();
  return read->fingerprint;
}

}  // namespace muster::broker
