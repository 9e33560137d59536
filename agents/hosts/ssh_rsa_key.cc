#include "agents/hosts/ssh_rsa_key.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>

#include <array>
#include <utility>

#include "agents/hosts/ssh_key_file.h"
#include "agents/hosts/ssh_wire.h"

namespace muster::hosts {
namespace {

constexpr std::string_view kRsa = "ssh-rsa";
constexpr std::string_view kRsaSha2 = "rsa-sha2-256";
constexpr std::string_view kOpensshMagic("openssh-key-v1\0", 15);

struct Free {
  void operator()(BIGNUM* number) const { BN_clear_free(number); }
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  void operator()(OSSL_PARAM_BLD* builder) const { OSSL_PARAM_BLD_free(builder); }
  void operator()(OSSL_PARAM* parameters) const { OSSL_PARAM_free(parameters); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

std::shared_ptr<EVP_PKEY> Share(EVP_PKEY* key) {
  return key == nullptr ? nullptr : std::shared_ptr<EVP_PKEY>(key, EVP_PKEY_free);
}

Owned<BIGNUM> NumberOf(std::string_view bytes) {
  return Owned<BIGNUM>(BN_bin2bn(reinterpret_cast<const unsigned char*>(bytes.data()),
                                 static_cast<int>(bytes.size()), nullptr));
}

// Writes a positive number, with a zero byte in front if its first bit is set.
std::string WireInteger(const BIGNUM* number) {
  std::string bytes(static_cast<size_t>(BN_num_bytes(number)), '\0');
  BN_bn2bin(number, reinterpret_cast<unsigned char*>(bytes.data()));
  const bool looks_negative = !bytes.empty() && (bytes[0] & 0x80) != 0;
  return WireString(looks_negative ? std::string(1, '\0') + bytes : bytes);
}

std::shared_ptr<EVP_PKEY> MakeKey(std::string_view n, std::string_view e, std::string_view d) {
  const std::array<std::pair<const char*, Owned<BIGNUM>>, 3> numbers = {{
      {OSSL_PKEY_PARAM_RSA_N, NumberOf(n)},
      {OSSL_PKEY_PARAM_RSA_E, NumberOf(e)},
      {OSSL_PKEY_PARAM_RSA_D, NumberOf(d)},
  }};
  const Owned<OSSL_PARAM_BLD> builder(OSSL_PARAM_BLD_new());
  for (const auto& [name, number] : numbers) {
    if (number == nullptr || OSSL_PARAM_BLD_push_BN(builder.get(), name, number.get()) != 1)
      return nullptr;
  }
  const Owned<OSSL_PARAM> parameters(OSSL_PARAM_BLD_to_param(builder.get()));
  const Owned<EVP_PKEY_CTX> context(EVP_PKEY_CTX_new_from_name(nullptr, "RSA", nullptr));
  EVP_PKEY* key = nullptr;
  if (parameters == nullptr || context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_KEYPAIR, parameters.get()) != 1) {
    return nullptr;
  }
  return Share(key);
}

// `bytes` is what OpensshKeyBytes gives.
std::shared_ptr<EVP_PKEY> ParseOpenssh(const std::string& bytes) {
  if (!bytes.starts_with(kOpensshMagic)) return nullptr;
  WireReader file(std::string_view(bytes).substr(kOpensshMagic.size()));
  const auto cipher = file.String();
  file.String();  // how a passphrase becomes a key
  file.String();
  const auto count = file.Number();
  file.String();  // the public key
  const auto secret = file.String();
  if (cipher != "none" || count != 1U || !secret.has_value()) return nullptr;
  WireReader key(*secret);
  key.Take(8);  // two check numbers
  if (key.String() != kRsa) return nullptr;
  const auto n = key.String();
  const auto e = key.String();
  const auto d = key.String();
  return n && e && d ? MakeKey(*n, *e, *d) : nullptr;
}

std::shared_ptr<EVP_PKEY> ParsePem(const std::string& text) {
  const Owned<BIO> bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  // The callback asks nobody for a passphrase.
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };
  std::shared_ptr<EVP_PKEY> key =
      Share(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  return key != nullptr && EVP_PKEY_is_a(key.get(), "RSA") == 1 ? key : nullptr;
}

}  // namespace

std::optional<std::string> AsSha2Key(std::string_view public_key) {
  WireReader reader(public_key);
  if (reader.String() != kRsa) return std::nullopt;
  return WireString(kRsaSha2) + std::string(reader.rest());
}

std::optional<RsaKey> RsaKey::Parse(const std::string& text) {
  const std::optional<std::string> openssh = OpensshKeyBytes(text);
  std::shared_ptr<EVP_PKEY> key = openssh.has_value() ? ParseOpenssh(*openssh) : ParsePem(text);
  if (key == nullptr) return std::nullopt;
  return RsaKey(std::move(key));
}

RsaKey::RsaKey(std::shared_ptr<EVP_PKEY> key) : key_(std::move(key)) {
  BIGNUM* n = nullptr;
  BIGNUM* e = nullptr;
  EVP_PKEY_get_bn_param(key_.get(), OSSL_PKEY_PARAM_RSA_N, &n);
  EVP_PKEY_get_bn_param(key_.get(), OSSL_PKEY_PARAM_RSA_E, &e);
  const Owned<BIGNUM> modulus(n);
  const Owned<BIGNUM> exponent(e);
  public_key_ = WireString(kRsaSha2) + WireInteger(e) + WireInteger(n);
}

std::optional<std::string> RsaKey::Sign(std::string_view data) const {
  const Owned<EVP_MD_CTX> context(EVP_MD_CTX_new());
  const auto* bytes = reinterpret_cast<const unsigned char*>(data.data());
  size_t size = 0;
  if (context == nullptr ||
      EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key_.get()) != 1 ||
      EVP_DigestSign(context.get(), nullptr, &size, bytes, data.size()) != 1) {
    return std::nullopt;
  }
  std::string signature(size, '\0');
  if (EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                     bytes, data.size()) != 1) {
    return std::nullopt;
  }
  signature.resize(size);
  return signature;
}

}  // namespace muster::hosts
