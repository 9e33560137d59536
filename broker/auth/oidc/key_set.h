// The keys with which a provider signs (JWKS, RFC 7517). Pure; any thread.
#ifndef MUSTER_BROKER_AUTH_OIDC_KEY_SET_H_
#define MUSTER_BROKER_AUTH_OIDC_KEY_SET_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "pki/openssl.h"

namespace muster::oidc {

// The two algorithms that are taken. The kind of the key decides which of them it is, never a
// token.
enum class Algorithm : uint8_t {
  kRs256,  // RSASSA-PKCS1-v1_5 with SHA-256
  kEs256,  // ECDSA on P-256 with SHA-256
};
std::string_view NameOf(Algorithm algorithm);

// Providers have two to four: the old one, the current one, the next one.
inline constexpr size_t kMaxKeys = 64;
// An RSA key has at least this many bits: fewer are too weak, and more only cost time.
inline constexpr int kMinRsaBits = 2048;
inline constexpr int kMaxRsaBits = 8192;
// Bytes of a key's name.
inline constexpr size_t kMaxKeyIdBytes = 256;

struct SigningKey {
  std::string id{};  // empty: it has none
  Algorithm algorithm = Algorithm::kRs256;
  std::shared_ptr<EVP_PKEY> key{};
};

// Returns the keys of the set that may sign with one of the algorithms. Others are left out,
// because sets have keys for other ends, too. INVALID_ARGUMENT: it is no key set, has more than
// kMaxKeys, or two keys of one name and algorithm.
absl::StatusOr<std::vector<SigningKey>> ReadKeySet(std::string_view json);

// Returns the key for this name and algorithm; without a name its only one. Null: none.
const SigningKey* FindKey(const std::vector<SigningKey>& keys, std::string_view id,
                          Algorithm algorithm);

// Returns whether the key made the signature, in the form of a JWS, of the text.
bool IsSignedBy(const SigningKey& key, std::string_view text, std::string_view signature);

}  // namespace muster::oidc

#endif  // MUSTER_BROKER_AUTH_OIDC_KEY_SET_H_
