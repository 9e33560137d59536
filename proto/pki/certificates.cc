#include "pki/certificates.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "contract/text.h"
#include "pki/openssl.h"
#include "pki/pem.h"

namespace muster::pki {
namespace {

// A serial has 20 bytes at most and no sign, which leaves 159 random bits.
constexpr int kSerialBits = 159;
constexpr size_t kMaxNameBytes = 253;

bool IsIpAddress(const std::string& name) {
  in6_addr address;
  return inet_pton(AF_INET, name.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, name.c_str(), &address) == 1;
}

bool IsHostName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
         });
}

void SetTimes(X509* certificate, const Validity& validity) {
  Must(ASN1_TIME_set(X509_getm_notBefore(certificate), absl::ToTimeT(validity.from)) != nullptr);
  Must(ASN1_TIME_set(X509_getm_notAfter(certificate), absl::ToTimeT(validity.until)) != nullptr);
}

void SetSerial(X509* certificate) {
  const BigNumber number(BN_new());
  Must(number != nullptr &&
       BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1);
  Must(BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr);
}

void SetName(X509* certificate, std::string_view common_name) {
  Must(X509_NAME_add_entry_by_NID(X509_get_subject_name(certificate), NID_commonName, MBSTRING_UTF8,
                                  reinterpret_cast<const unsigned char*>(common_name.data()),
                                  static_cast<int>(common_name.size()), -1, 0) == 1);
}

// `value` is in OpenSSL's language for extensions; no part of it may come from outside unchecked.
void Extend(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  Must(extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1);
}

void NameIssuerKey(X509* certificate, X509* issuer) {
  if (X509_get0_subject_key_id(issuer) == nullptr) return;  // a CA that others have made
  Extend(certificate, issuer, NID_authority_key_identifier, "keyid");
}

// Makes a certificate with all but its extensions and its signature.
X509Cert Begin(std::string_view common_name, const Validity& validity, EVP_PKEY* key,
               X509* issuer) {
  X509Cert certificate(X509_new());
  Must(certificate != nullptr && X509_set_version(certificate.get(), X509_VERSION_3) == 1);
  SetSerial(certificate.get());
  SetTimes(certificate.get(), validity);
  SetName(certificate.get(), common_name);
  Must(X509_set_pubkey(certificate.get(), key) == 1);
  X509* const by = issuer != nullptr ? issuer : certificate.get();
  Must(X509_set_issuer_name(certificate.get(), X509_get_subject_name(by)) == 1);
  return certificate;
}

void Sign(X509* certificate, EVP_PKEY* key) { Must(X509_sign(certificate, key, EVP_sha256()) > 0); }

struct Signer {
  Key key;
  X509Cert certificate;
};

absl::StatusOr<Signer> ReadSigner(const Identity& ca) {
  absl::StatusOr<Key> key = ReadKey(ca.key);
  if (!key.ok()) return Invalid(fmt::format("the CA's key {}", ToStd(key.status().message())));
  absl::StatusOr<X509Cert> certificate = ReadX509(ca.certificate);
  if (!certificate.ok())
    return Invalid(fmt::format("the CA's certificate {}", ToStd(certificate.status().message())));
  if (X509_check_private_key(certificate->get(), key->get()) != 1) {
    ERR_clear_error();
    return Invalid("the CA's key does not belong to its certificate");
  }
  return Signer{*std::move(key), *std::move(certificate)};
}

// A certificate lives no longer than its CA.
Validity Within(Validity validity, X509* ca) {
  validity.until = std::min(validity.until, TimeOf(X509_get0_notAfter(ca)));
  return validity;
}

bool IsP256(EVP_PKEY* key) {
  char group[32] = {};
  return EVP_PKEY_get_base_id(key) == EVP_PKEY_EC &&
         EVP_PKEY_get_group_name(key, group, sizeof(group), nullptr) == 1 &&
         std::string_view(group) == "prime256v1";
}

}  // namespace

std::string MakeKey() {
  const Key key(EVP_EC_gen("P-256"));
  Must(key != nullptr);
  return ToPem(key.get());
}

Identity MakeCa(std::string_view name, const Validity& validity) {
  const Key key(EVP_EC_gen("P-256"));
  Must(key != nullptr);
  const X509Cert certificate = Begin(name, validity, key.get(), nullptr);
  Extend(certificate.get(), certificate.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  Extend(certificate.get(), certificate.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
  Extend(certificate.get(), certificate.get(), NID_subject_key_identifier, "hash");
  Sign(certificate.get(), key.get());
  return {ToPem(key.get()), ToPem(certificate.get())};
}

absl::StatusOr<std::string> MakeServerCertificate(const Identity& ca, std::string_view key,
                                                  const std::vector<std::string>& names,
                                                  const Validity& validity) {
  if (names.empty()) return Invalid("a server's certificate needs at least one name");
  std::string list;
  for (const std::string& name : names) {
    const bool is_address = IsIpAddress(name);
    if (!is_address && !IsHostName(name)) {
      return Invalid(
          fmt::format("\"{}\" is neither a host name nor an IP address; write broker.example.org "
                      "or 192.0.2.1, without a port",
                      name));
    }
    list += fmt::format("{}{}:{}", list.empty() ? "" : ",", is_address ? "IP" : "DNS", name);
  }
  absl::StatusOr<Signer> signer = ReadSigner(ca);
  if (!signer.ok()) return signer.status();
  const absl::StatusOr<Key> own = ReadKey(key);
  if (!own.ok()) return Invalid(fmt::format("the server's key {}", ToStd(own.status().message())));
  X509* const issuer = signer->certificate.get();
  const X509Cert certificate = Begin("muster-broker", Within(validity, issuer), own->get(), issuer);
  Extend(certificate.get(), issuer, NID_basic_constraints, "critical,CA:FALSE");
  Extend(certificate.get(), issuer, NID_key_usage, "critical,digitalSignature");
  Extend(certificate.get(), issuer, NID_ext_key_usage, "serverAuth");
  NameIssuerKey(certificate.get(), issuer);
  Extend(certificate.get(), issuer, NID_subject_alt_name, list);
  Sign(certificate.get(), signer->key.get());
  return ToPem(certificate.get()) + ToPem(issuer);
}

absl::StatusOr<std::string> MakeRequest(std::string_view key) {
  const absl::StatusOr<Key> own = ReadKey(key);
  if (!own.ok()) return own.status();
  const X509Request request(X509_REQ_new());
  Must(request != nullptr && X509_REQ_set_version(request.get(), X509_REQ_VERSION_1) == 1);
  Must(X509_REQ_set_pubkey(request.get(), own->get()) == 1);
  Must(X509_REQ_sign(request.get(), own->get(), EVP_sha256()) > 0);
  return ToPem(request.get());
}

absl::StatusOr<std::string> SignRequest(const Identity& ca, std::string_view request,
                                        std::string_view cluster, const Validity& validity) {
  if (request.size() > kMaxPemBytes) return Invalid("is too large for a certificate request");
  if (!IsHostName(cluster)) return Invalid(fmt::format("\"{}\" is no cluster's name", cluster));
  const Bio bio(BIO_new_mem_buf(request.data(), static_cast<int>(request.size())));
  const X509Request asked(PEM_read_bio_X509_REQ(bio.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (asked == nullptr) return Invalid("holds no whole certificate request in PEM");
  EVP_PKEY* const key = X509_REQ_get0_pubkey(asked.get());
  if (key == nullptr || !IsP256(key)) return Invalid("has a key that is not EC P-256");
  const bool is_own = X509_REQ_verify(asked.get(), key) == 1;
  ERR_clear_error();
  if (!is_own) return Invalid("is not signed by its own key");
  absl::StatusOr<Signer> signer = ReadSigner(ca);
  if (!signer.ok()) return signer.status();
  X509* const issuer = signer->certificate.get();
  const X509Cert certificate = Begin(cluster, Within(validity, issuer), key, issuer);
  Extend(certificate.get(), issuer, NID_basic_constraints, "critical,CA:FALSE");
  Extend(certificate.get(), issuer, NID_key_usage, "critical,digitalSignature");
  Extend(certificate.get(), issuer, NID_ext_key_usage, "clientAuth");
  NameIssuerKey(certificate.get(), issuer);
  Extend(certificate.get(), issuer, NID_subject_alt_name,
         fmt::format("URI:muster://cluster/{}", cluster));
  Sign(certificate.get(), signer->key.get());
  return ToPem(certificate.get());
}

absl::Status CheckPair(const Identity& identity) {
  const absl::StatusOr<Key> key = ReadKey(identity.key);
  if (!key.ok()) return Invalid(fmt::format("the key {}", ToStd(key.status().message())));
  const absl::StatusOr<X509Cert> certificate = ReadX509(identity.certificate);
  if (!certificate.ok())
    return Invalid(fmt::format("the certificate {}", ToStd(certificate.status().message())));
  const bool belongs = X509_check_private_key(certificate->get(), key->get()) == 1;
  ERR_clear_error();
  return belongs ? absl::OkStatus() : Invalid("the key does not belong to the certificate");
}

}  // namespace muster::pki
