#include "pki/pem.h"

#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <cstdlib>
#include <ctime>
#include <utility>

#include "pki/certificates.h"

namespace muster::pki {
namespace {

Bio Reading(std::string_view bytes) {
  Bio bio(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
  Must(bio != nullptr);
  return bio;
}

// A key that needs a password counts as unreadable: nobody is asked.
int NoPassword(char*, int, int, void*) { return -1; }

template <typename Write>
std::string Written(Write write) {
  const Bio bio(BIO_new(BIO_s_mem()));
  Must(bio != nullptr && write(bio.get()) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

}  // namespace

void Must(bool done) {
  if (!done) std::abort();
}

absl::Status Invalid(std::string_view text) {
  return absl::InvalidArgumentError(absl::string_view(text.data(), text.size()));
}

absl::StatusOr<Key> ReadKey(std::string_view pem) {
  if (pem.size() > kMaxPemBytes) return Invalid("is too large for a key");
  Key key(PEM_read_bio_PrivateKey(Reading(pem).get(), nullptr, NoPassword, nullptr));
  ERR_clear_error();
  if (key == nullptr) return Invalid("holds no whole private key in PEM without a password");
  return key;
}

absl::StatusOr<X509Cert> ReadX509(std::string_view pem) {
  if (pem.size() > kMaxPemBytes) return Invalid("is too large for certificates");
  X509Cert certificate(PEM_read_bio_X509(Reading(pem).get(), nullptr, NoPassword, nullptr));
  ERR_clear_error();
  if (certificate == nullptr) return Invalid("holds no whole certificate in PEM");
  return certificate;
}

absl::StatusOr<X509Stack> ReadAll(std::string_view pem) {
  if (pem.size() > kMaxPemBytes) return Invalid("is too large for certificates");
  X509Stack all(sk_X509_new_null());
  const Bio bio = Reading(pem);
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr)) {
    Must(sk_X509_push(all.get(), next) > 0);
  }
  // Text without a further certificate is the good end.
  const bool is_whole = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (sk_X509_num(all.get()) == 0) return Invalid("holds no whole certificate in PEM");
  if (!is_whole) return Invalid("holds a certificate that is not whole");
  return all;
}

std::string ToPem(X509* certificate) {
  return Written([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

std::string ToPem(EVP_PKEY* key) {
  return Written([&](BIO* bio) {
    return PEM_write_bio_PKCS8PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

std::string ToPem(X509_REQ* request) {
  return Written([&](BIO* bio) { return PEM_write_bio_X509_REQ(bio, request); });
}

absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTM(parts, absl::UTCTimeZone());
}

}  // namespace muster::pki
