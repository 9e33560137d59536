#include "broker/auth/oidc/key_set.h"

#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include <optional>
#include <utility>

#include "contract/text.h"
#include "digest/base64url.h"
#include "oidc/json.h"

namespace muster::oidc {
namespace {

using nlohmann::json;

constexpr size_t kP256Bytes = 32;

using ParamBuild = std::unique_ptr<OSSL_PARAM_BLD, pki::Freed<OSSL_PARAM_BLD_free>>;
using Params = std::unique_ptr<OSSL_PARAM, pki::Freed<OSSL_PARAM_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, pki::Freed<EVP_PKEY_CTX_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, pki::Freed<EVP_MD_CTX_free>>;
using Signature = std::unique_ptr<ECDSA_SIG, pki::Freed<ECDSA_SIG_free>>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

pki::BigNumber Number(std::string_view bytes) {
  return pki::BigNumber(BN_bin2bn(Bytes(bytes), static_cast<int>(bytes.size()), nullptr));
}

std::shared_ptr<EVP_PKEY> Build(const char* kind, OSSL_PARAM_BLD* build) {
  const Params params(OSSL_PARAM_BLD_to_param(build));
  const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, kind, nullptr));
  EVP_PKEY* key = nullptr;
  if (params == nullptr || context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, params.get()) != 1) {
    return nullptr;
  }
  return {key, EVP_PKEY_free};
}

std::shared_ptr<EVP_PKEY> RsaKey(const json& jwk) {
  const std::optional<std::string> modulus = FromBase64Url(TextMember(jwk, "n"));
  const std::optional<std::string> exponent = FromBase64Url(TextMember(jwk, "e"));
  if (!modulus || !exponent || modulus->size() > kMaxRsaBits / 8 || exponent->size() > 8)
    return nullptr;
  const pki::BigNumber n = Number(*modulus);
  const pki::BigNumber e = Number(*exponent);
  const ParamBuild build(OSSL_PARAM_BLD_new());
  if (n == nullptr || e == nullptr || build == nullptr || BN_num_bits(n.get()) < kMinRsaBits ||
      !BN_is_odd(n.get()) || !BN_is_odd(e.get()) || BN_is_one(e.get())) {
    return nullptr;
  }
  OSSL_PARAM_BLD_push_BN(build.get(), OSSL_PKEY_PARAM_RSA_N, n.get());
  OSSL_PARAM_BLD_push_BN(build.get(), OSSL_PKEY_PARAM_RSA_E, e.get());
  return Build("RSA", build.get());
}

std::shared_ptr<EVP_PKEY> EcKey(const json& jwk) {
  const std::optional<std::string> x = FromBase64Url(TextMember(jwk, "x"));
  const std::optional<std::string> y = FromBase64Url(TextMember(jwk, "y"));
  const bool has_size = x && y && x->size() == kP256Bytes && y->size() == kP256Bytes;
  if (!has_size || TextMember(jwk, "crv") != "P-256") return nullptr;
  const std::string point = "\x04" + *x + *y;
  const ParamBuild build(OSSL_PARAM_BLD_new());
  if (build == nullptr) return nullptr;
  OSSL_PARAM_BLD_push_utf8_string(build.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0);
  OSSL_PARAM_BLD_push_octet_string(build.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                   point.size());
  return Build("EC", build.get());
}

// Nothing: the key is for something else.
std::optional<SigningKey> ReadKey(const json& jwk) {
  if (!jwk.is_object()) return std::nullopt;
  const std::string kind = TextMember(jwk, "kty");
  SigningKey key{.id = TextMember(jwk, "kid")};
  if (key.id.size() > kMaxKeyIdBytes || (jwk.contains("kid") && key.id.empty()))
    return std::nullopt;
  if (jwk.contains("use") && TextMember(jwk, "use") != "sig") return std::nullopt;
  if (kind == "RSA") {
    key.algorithm = Algorithm::kRs256;
    key.key = RsaKey(jwk);
  } else if (kind == "EC") {
    key.algorithm = Algorithm::kEs256;
    key.key = EcKey(jwk);
  }
  if (key.key == nullptr) return std::nullopt;
  if (jwk.contains("alg") && TextMember(jwk, "alg") != NameOf(key.algorithm)) return std::nullopt;
  return key;
}

// A JWS has the two numbers of an ECDSA signature one behind the other; OpenSSL takes them as DER.
std::optional<std::string> ToDer(std::string_view signature) {
  if (signature.size() != 2 * kP256Bytes) return std::nullopt;
  pki::BigNumber r = Number(signature.substr(0, kP256Bytes));
  pki::BigNumber s = Number(signature.substr(kP256Bytes));
  const Signature both(ECDSA_SIG_new());
  if (r == nullptr || s == nullptr || both == nullptr) return std::nullopt;
  ECDSA_SIG_set0(both.get(), r.release(), s.release());
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(both.get(), &der);
  if (size <= 0) return std::nullopt;
  std::string text(reinterpret_cast<char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return text;
}

}  // namespace

std::string_view NameOf(Algorithm algorithm) {
  return algorithm == Algorithm::kRs256 ? "RS256" : "ES256";
}

absl::StatusOr<std::vector<SigningKey>> ReadKeySet(std::string_view text) {
  const std::optional<json> set = ParseObject(text);
  if (!set || !set->contains("keys") || !(*set)["keys"].is_array())
    return absl::InvalidArgumentError("it is no key set: an object with a list \"keys\"");
  const json& all = (*set)["keys"];
  if (all.size() > kMaxKeys) {
    return absl::InvalidArgumentError(
        ToAbsl(fmt::format("it has {} keys; the most is {}", all.size(), kMaxKeys)));
  }
  std::vector<SigningKey> keys;
  for (const json& jwk : all) {
    std::optional<SigningKey> key = ReadKey(jwk);
    if (!key) continue;
    for (const SigningKey& other : keys) {
      if (!key->id.empty() && other.id == key->id && other.algorithm == key->algorithm)
        return absl::InvalidArgumentError("two of its keys have one name (kid)");
    }
    keys.push_back(*std::move(key));
  }
  return keys;
}

const SigningKey* FindKey(const std::vector<SigningKey>& keys, std::string_view id,
                          Algorithm algorithm) {
  const SigningKey* only = nullptr;
  for (const SigningKey& key : keys) {
    if (key.algorithm != algorithm) continue;
    if (!id.empty() && key.id == id) return &key;
    if (id.empty() && only != nullptr) return nullptr;
    if (id.empty()) only = &key;
  }
  return only;
}

bool IsSignedBy(const SigningKey& key, std::string_view text, std::string_view signature) {
  std::string form(signature);
  if (key.algorithm == Algorithm::kEs256) {
    std::optional<std::string> der = ToDer(signature);
    if (!der) return false;
    form = *std::move(der);
  } else if (form.size() != static_cast<size_t>(EVP_PKEY_get_size(key.key.get()))) {
    return false;
  }
  const DigestContext context(EVP_MD_CTX_new());
  return context != nullptr &&
         EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key.key.get()) == 1 &&
         EVP_DigestVerify(context.get(), Bytes(form), form.size(), Bytes(text), text.size()) == 1;
}

}  // namespace muster::oidc
