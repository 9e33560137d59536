#include "signer.h"

#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include <memory>
#include <vector>

#include "digest/base64url.h"

namespace muster::oidc {
namespace {

using nlohmann::json;

std::string Part(const EVP_PKEY* key, const char* name, int size = 0) {
  BIGNUM* number = nullptr;
  EVP_PKEY_get_bn_param(key, name, &number);
  const pki::BigNumber held(number);
  std::string bytes(static_cast<size_t>(size != 0 ? size : BN_num_bytes(number)), '\0');
  BN_bn2binpad(number, reinterpret_cast<unsigned char*>(bytes.data()),
               static_cast<int>(bytes.size()));
  return ToBase64Url(bytes);
}

std::string RawOf(const std::string& der) {
  const auto* begin = reinterpret_cast<const unsigned char*>(der.data());
  const std::unique_ptr<ECDSA_SIG, pki::Freed<ECDSA_SIG_free>> both(
      d2i_ECDSA_SIG(nullptr, &begin, static_cast<long>(der.size())));
  std::string raw(64, '\0');
  auto* out = reinterpret_cast<unsigned char*>(raw.data());
  BN_bn2binpad(ECDSA_SIG_get0_r(both.get()), out, 32);
  BN_bn2binpad(ECDSA_SIG_get0_s(both.get()), out + 32, 32);
  return raw;
}

}  // namespace

Signer::Signer(Algorithm algorithm, std::string id, int rsa_bits)
    : algorithm_(algorithm),
      id_(std::move(id)),
      key_(algorithm == Algorithm::kRs256 ? EVP_RSA_gen(static_cast<unsigned>(rsa_bits))
                                          : EVP_EC_gen("P-256")) {}

json Signer::Jwk() const {
  json jwk = {{"kid", id_}, {"alg", std::string(NameOf(algorithm_))}, {"use", "sig"}};
  if (algorithm_ == Algorithm::kRs256) {
    jwk["kty"] = "RSA";
    jwk["n"] = Part(key_.get(), OSSL_PKEY_PARAM_RSA_N);
    jwk["e"] = Part(key_.get(), OSSL_PKEY_PARAM_RSA_E);
  } else {
    jwk["kty"] = "EC";
    jwk["crv"] = "P-256";
    jwk["x"] = Part(key_.get(), OSSL_PKEY_PARAM_EC_PUB_X, 32);
    jwk["y"] = Part(key_.get(), OSSL_PKEY_PARAM_EC_PUB_Y, 32);
  }
  return jwk;
}

std::string Signer::Sign(std::string_view text) const {
  const std::unique_ptr<EVP_MD_CTX, pki::Freed<EVP_MD_CTX_free>> context(EVP_MD_CTX_new());
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  size_t size = 0;
  EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key_.get());
  EVP_DigestSign(context.get(), nullptr, &size, bytes, text.size());
  std::string signature(size, '\0');
  EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, bytes,
                 text.size());
  signature.resize(size);
  return algorithm_ == Algorithm::kRs256 ? signature : RawOf(signature);
}

std::string Signer::Header() const {
  return json{{"alg", std::string(NameOf(algorithm_))}, {"kid", id_}, {"typ", "JWT"}}.dump();
}

std::string Signer::Token(const std::string& header, const std::string& claims) const {
  const std::string text = fmt::format("{}.{}", ToBase64Url(header), ToBase64Url(claims));
  return fmt::format("{}.{}", text, ToBase64Url(Sign(text)));
}

std::string Signer::Token(const json& claims) const { return Token(Header(), claims.dump()); }

std::string SetOf(std::initializer_list<json> keys) {
  return json{{"keys", std::vector<json>(keys)}}.dump();
}

}  // namespace muster::oidc
