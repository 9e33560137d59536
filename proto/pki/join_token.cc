#include "pki/join_token.h"

#include <fmt/format.h>
#include <openssl/rand.h>

#include "pki/pem.h"

namespace muster::pki {
namespace {

constexpr std::string_view kPrefix = "muster-join-";
constexpr size_t kSecretBytes = 16;
constexpr size_t kFingerprintDigits = 64;

bool IsHex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::string MakeJoinToken(std::string_view ca_fingerprint) {
  unsigned char secret[kSecretBytes];
  Must(RAND_bytes(secret, sizeof(secret)) == 1);
  std::string token(kPrefix);
  for (const unsigned char byte : secret) token += fmt::format("{:02x}", byte);
  return fmt::format("{}-{}", token, ca_fingerprint);
}

absl::StatusOr<std::string> FingerprintIn(std::string_view token) {
  constexpr size_t kSecretDigits = 2 * kSecretBytes;
  const size_t size = kPrefix.size() + kSecretDigits + 1 + kFingerprintDigits;
  if (token.size() == size && token.starts_with(kPrefix) &&
      IsHex(token.substr(kPrefix.size(), kSecretDigits)) &&
      token[kPrefix.size() + kSecretDigits] == '-' &&
      IsHex(token.substr(size - kFingerprintDigits))) {
    return std::string(token.substr(size - kFingerprintDigits));
  }
  return Invalid(
      "this is not a whole token; copy the one that muster clusters invite has printed, all of "
      "muster-join-...");
}

}  // namespace muster::pki
