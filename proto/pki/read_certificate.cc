// Reads and verifies certificates.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>

#include <cctype>
#include <memory>
#include <utility>

#include "contract/text.h"
#include "pki/certificates.h"
#include "pki/openssl.h"
#include "pki/pem.h"

namespace muster::pki {
namespace {

constexpr std::string_view kClusterUri = "muster://cluster/";

using Names = std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>>;
using Number = std::unique_ptr<char, Freed<[](char* text) { OPENSSL_free(text); }>>;

std::string Text(const ASN1_STRING* text) {
  return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                     static_cast<size_t>(ASN1_STRING_length(text)));
}

Names NamesOf(X509* certificate) {
  return Names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
}

std::string AddressText(const ASN1_OCTET_STRING* address) {
  char text[INET6_ADDRSTRLEN] = {};
  const int family = ASN1_STRING_length(address) == 4 ? AF_INET : AF_INET6;
  if (family == AF_INET6 && ASN1_STRING_length(address) != 16) return "";
  inet_ntop(family, ASN1_STRING_get0_data(address), text, sizeof(text));
  return text;
}

// A certificate that names two clusters speaks for none.
std::string ClusterOf(X509* certificate) {
  const Names names = NamesOf(certificate);
  std::string cluster;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const std::string uri = Text(name->d.uniformResourceIdentifier);
    if (!uri.starts_with(kClusterUri)) continue;
    if (!cluster.empty()) return "";
    cluster = uri.substr(kClusterUri.size());
  }
  return cluster;
}

std::string CommonName(X509* certificate) {
  X509_NAME* const subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return "";
  return Text(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

std::string SerialOf(X509* certificate) {
  const BigNumber number(ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr));
  Must(number != nullptr);
  const Number text(BN_bn2hex(number.get()));
  Must(text != nullptr);
  std::string serial(text.get());
  for (char& c : serial) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return serial;
}

std::string FingerprintOf(X509* certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  Must(X509_digest(certificate, EVP_sha256(), digest, &size) == 1);
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

std::string When(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

absl::Status Refused(const std::string& text) { return absl::UnauthenticatedError(text); }

// Returns the words of OpenSSL's verdict on a certificate.
absl::Status Verdict(X509_STORE_CTX* context, X509* leaf, absl::Time now, std::string_view host) {
  const int error = X509_STORE_CTX_get_error(context);
  X509* const current = X509_STORE_CTX_get_current_cert(context);
  X509* const at = current != nullptr ? current : leaf;
  const std::string whose =
      at == leaf ? "the certificate" : fmt::format("its CA \"{}\"", CommonName(at));
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return Refused(
          fmt::format("{} has expired on {}, and it is {} here; check the clock, or get "
                      "a new one",
                      whose, When(TimeOf(X509_get0_notAfter(at))), When(now)));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return Refused(fmt::format("{} is valid only from {}, and it is {} here; check the clocks",
                                 whose, When(TimeOf(X509_get0_notBefore(at))), When(now)));
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return Refused(
          fmt::format("the certificate does not name \"{}\"; use a name that it has, or get "
                      "one with this name",
                      host));
    case X509_V_ERR_INVALID_PURPOSE:
      return Refused("the certificate is for another purpose; use one that was made for this end");
    default:
      return Refused(
          fmt::format("the certificate is not signed by the CA that is trusted here ({}); use one "
                      "of that CA",
                      X509_verify_cert_error_string(error)));
  }
}

absl::StatusOr<Store> StoreOf(std::string_view anchors) {
  const absl::StatusOr<X509Stack> all = ReadAll(anchors);
  if (!all.ok()) return Invalid(fmt::format("the CA's file {}", ToStd(all.status().message())));
  Store store(X509_STORE_new());
  Must(store != nullptr);
  for (int i = 0; i < sk_X509_num(all->get()); ++i) {
    Must(X509_STORE_add_cert(store.get(), sk_X509_value(all->get(), i)) == 1);
  }
  return store;
}

void SetHost(X509_VERIFY_PARAM* wanted, const std::string& host) {
  if (host.empty()) return;
  const bool is_address = X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str()) == 1;
  ERR_clear_error();
  if (!is_address) Must(X509_VERIFY_PARAM_set1_host(wanted, host.c_str(), host.size()) == 1);
}

}  // namespace

absl::StatusOr<Certificate> ReadCertificate(std::string_view pem) {
  const absl::StatusOr<X509Cert> read = ReadX509(pem);
  if (!read.ok()) return read.status();
  X509* const x509 = read->get();
  Certificate certificate;
  certificate.common_name = CommonName(x509);
  certificate.cluster = ClusterOf(x509);
  certificate.serial = SerialOf(x509);
  certificate.fingerprint = FingerprintOf(x509);
  certificate.validity = {TimeOf(X509_get0_notBefore(x509)), TimeOf(X509_get0_notAfter(x509))};
  certificate.is_self_signed = X509_self_signed(x509, /*verify_signature=*/1) == 1;
  ERR_clear_error();
  return certificate;
}

absl::StatusOr<std::vector<std::string>> SplitCertificates(std::string_view pem) {
  const absl::StatusOr<X509Stack> all = ReadAll(pem);
  if (!all.ok()) return all.status();
  std::vector<std::string> split;
  for (int i = 0; i < sk_X509_num(all->get()); ++i) {
    split.push_back(ToPem(sk_X509_value(all->get(), i)));
  }
  return split;
}

absl::StatusOr<std::vector<std::string>> ServerNames(std::string_view certificate) {
  const absl::StatusOr<X509Cert> read = ReadX509(certificate);
  if (!read.ok()) return read.status();
  const Names names = NamesOf(read->get());
  std::vector<std::string> all;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) all.push_back(Text(name->d.dNSName));
    if (name->type == GEN_IPADD) all.push_back(AddressText(name->d.iPAddress));
  }
  return all;
}

absl::Status Verify(std::string_view chain, std::string_view anchors, Purpose purpose,
                    absl::Time now, std::string_view host) {
  const absl::StatusOr<X509Stack> all = ReadAll(chain);
  if (!all.ok()) return Invalid(fmt::format("the certificate {}", ToStd(all.status().message())));
  const absl::StatusOr<Store> store = StoreOf(anchors);
  if (!store.ok()) return store.status();
  X509* const leaf = sk_X509_value(all->get(), 0);
  const StoreContext context(X509_STORE_CTX_new());
  Must(context != nullptr &&
       X509_STORE_CTX_init(context.get(), store->get(), leaf, all->get()) == 1);
  X509_VERIFY_PARAM* const wanted = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_time(wanted, absl::ToTimeT(now));
  X509_VERIFY_PARAM_set_purpose(
      wanted, purpose == Purpose::kServer ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT);
  const std::string name(host);
  SetHost(wanted, name);
  const bool is_good = X509_verify_cert(context.get()) == 1;
  const absl::Status verdict = is_good ? absl::OkStatus() : Verdict(context.get(), leaf, now, host);
  ERR_clear_error();
  return verdict;
}

}  // namespace muster::pki
