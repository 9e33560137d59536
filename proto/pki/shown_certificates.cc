#include "pki/shown_certificates.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "pki/certificates.h"
#include "pki/openssl.h"
#include "pki/pem.h"

namespace muster::pki {
namespace {

using Context = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;

absl::Status Unreachable(const std::string& place, std::string_view why) {
  const unsigned long code = ERR_peek_last_error();
  const char* const words = code == 0 ? nullptr : ERR_reason_error_string(code);
  // TLS's own complaint about what came; without any, the other end has gone or was never there.
  const bool is_other_protocol = ERR_GET_LIB(code) == ERR_LIB_SSL;
  const absl::Status status(
      is_other_protocol ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kUnavailable,
      fmt::format("{} {}{}{}; check the address and that the broker has tls.listen", place, why,
                  words == nullptr ? "" : ": ", words == nullptr ? "" : words));
  ERR_clear_error();
  return status;
}

// Goes on until it is done, has failed, or the time is over.
bool Connect(BIO* bio, absl::Time deadline) {
  while (BIO_do_connect(bio) != 1) {
    if (!BIO_should_retry(bio)) return false;
    if (BIO_wait(bio, absl::ToTimeT(deadline), 0) != 1) return false;
  }
  return true;
}

// Returns "head.lab" for "head.lab:7443", and "::1" for "[::1]:7443".
std::string_view HostIn(std::string_view place) {
  std::string_view host = place.substr(0, place.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

}  // namespace

absl::StatusOr<std::string> ShownCertificates(const std::string& place, absl::Duration patience) {
  const Context context(SSL_CTX_new(TLS_client_method()));
  Must(context != nullptr && SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) == 1);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  const Bio bio(BIO_new_ssl_connect(context.get()));
  Must(bio != nullptr);
  BIO_set_conn_hostname(bio.get(), place.c_str());
  BIO_set_nbio(bio.get(), 1);
  SSL* ssl = nullptr;
  BIO_get_ssl(bio.get(), &ssl);
  Must(ssl != nullptr);
  // gRPC's servers speak nothing else.
  constexpr unsigned char kProtocols[] = {2, 'h', '2'};
  Must(SSL_set_alpn_protos(ssl, kProtocols, sizeof(kProtocols)) == 0);
  ERR_clear_error();
  if (!Connect(bio.get(), absl::Now() + patience)) {
    return Unreachable(place, "does not answer by TLS");
  }
  std::string all;
  STACK_OF(X509)* const chain = SSL_get_peer_cert_chain(ssl);
  for (int i = 0; i < sk_X509_num(chain); ++i) all += ToPem(sk_X509_value(chain, i));
  if (all.empty()) return Unreachable(place, "shows no certificate");
  return all;
}

absl::StatusOr<std::string> ShownCa(const std::string& place, const std::string& fingerprint,
                                    absl::Duration patience) {
  const absl::StatusOr<std::string> shown = ShownCertificates(place, patience);
  if (!shown.ok()) return shown.status();
  const absl::StatusOr<std::vector<std::string>> chain = SplitCertificates(*shown);
  if (!chain.ok()) return chain.status();
  for (const std::string& pem : *chain) {
    const absl::StatusOr<Certificate> read = ReadCertificate(pem);
    if (read.ok() && read->fingerprint == fingerprint) return pem;
  }
  return absl::UnauthenticatedError(
      fmt::format("{} shows no CA with the fingerprint {}; check the address, and do not go on if "
                  "it is right",
                  place, fingerprint));
}

absl::Status CheckShownCertificates(const std::string& place, std::string_view anchors,
                                    absl::Duration patience) {
  const absl::StatusOr<std::string> shown = ShownCertificates(place, patience);
  if (!shown.ok()) return shown.status();
  return Verify(*shown, anchors, Purpose::kServer, absl::Now(), HostIn(place));
}

}  // namespace muster::pki
