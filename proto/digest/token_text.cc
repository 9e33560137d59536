#include "digest/token_text.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <array>
#include <cstdint>

#include "digest/sha256.h"

namespace muster {
namespace {

constexpr std::string_view kAlphabet =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
// Bytes below it fall on each character equally often; the others are thrown away.
constexpr unsigned kFairBytes = 256 / kAlphabet.size() * kAlphabet.size();

std::string SumOf(std::string_view text) {
  Sha256 digest;
  digest.Add(text);
  const std::string bytes = digest.FinishBytes();
  uint64_t number = 0;
  for (size_t i = 0; i < sizeof(number); ++i) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  std::string sum;
  for (size_t i = 0; i < kTokenSumCharacters; ++i) {
    sum += kAlphabet[number % kAlphabet.size()];
    number /= kAlphabet.size();
  }
  return sum;
}

}  // namespace

std::string NewTokenText() {
  std::string text(kTokenPrefix);
  std::array<unsigned char, 64> bytes{};
  while (text.size() < kTokenCharacters - kTokenSumCharacters) {
    if (RAND_bytes(bytes.data(), bytes.size()) != 1) return "";
    for (const unsigned char byte : bytes) {
      if (text.size() == kTokenCharacters - kTokenSumCharacters) break;
      if (byte < kFairBytes) text += kAlphabet[byte % kAlphabet.size()];
    }
  }
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return text + SumOf(text);
}

bool IsTokenText(std::string_view text) {
  if (text.size() != kTokenCharacters || !text.starts_with(kTokenPrefix)) return false;
  const std::string_view body = text.substr(0, kTokenCharacters - kTokenSumCharacters);
  if (text.substr(kTokenPrefix.size()).find_first_not_of(kAlphabet) != text.npos) return false;
  return text.substr(body.size()) == SumOf(body);
}

}  // namespace muster
