#include "broker/notify/signature.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>

#include "absl/strings/escaping.h"

namespace muster::notify {

std::string Signature(std::string_view secret, absl::Time now, std::string_view body) {
  const int64_t seconds = absl::ToUnixSeconds(now);
  const std::string text = fmt::format("{}.{}", seconds, body);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &size);
  const absl::string_view bytes(reinterpret_cast<const char*>(digest.data()), size);
  return fmt::format("t={},v1={}", seconds, absl::BytesToHexString(bytes));
}

}  // namespace muster::notify
