#include "broker/logs/crc32.h"

#include <zlib.h>

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace muster::logs {
namespace {

uint32_t ByZlib(uint32_t crc, std::string_view data) {
  return static_cast<uint32_t>(
      crc32(crc, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size())));
}

#if defined(__x86_64__)

// One folding pass takes this many bytes: four words of 16 bytes.
constexpr size_t kFoldBytes = 64;
constexpr size_t kWordBytes = 16;

// The constants are powers of x modulo the polynomial, bit-reflected. See "Fast CRC Computation for
// Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009.
constexpr uint64_t kFold512[2] = {0x0154442bd4, 0x01c6e41596};
constexpr uint64_t kFold128[2] = {0x01751997d0, 0x00ccaa009e};
constexpr uint64_t kFold64 = 0x0163cd6124;
constexpr uint64_t kReduce[2] = {0x01db710641, 0x01f7011641};

__attribute__((target("pclmul,sse4.1"))) __m128i Load(const char* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

// Moves `word` on by as many bits as `by` is for, and adds `next`.
__attribute__((target("pclmul,sse4.1"))) __m128i Fold(__m128i word, __m128i by, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(word, by, 0x00);
  const __m128i high = _mm_clmulepi64_si128(word, by, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// Reduces 128 bits to 32.
__attribute__((target("pclmul,sse4.1"))) uint32_t Reduce(__m128i word, __m128i fold_128) {
  const __m128i low_halves = _mm_setr_epi32(~0, 0, ~0, 0);
  word = _mm_xor_si128(_mm_srli_si128(word, 8), _mm_clmulepi64_si128(word, fold_128, 0x10));
  const __m128i rest = _mm_srli_si128(word, 4);
  word = _mm_clmulepi64_si128(_mm_and_si128(word, low_halves),
                              _mm_cvtsi64_si128(static_cast<int64_t>(kFold64)), 0x00);
  word = _mm_xor_si128(word, rest);
  const __m128i reduce = Load(reinterpret_cast<const char*>(kReduce));
  __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(word, low_halves), reduce, 0x10);
  quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_halves), reduce, 0x00);
  return static_cast<uint32_t>(_mm_extract_epi32(_mm_xor_si128(word, quotient), 1));
}

// `data` has at least kFoldBytes, in whole words.
__attribute__((target("pclmul,sse4.1"))) uint32_t ByFolding(uint32_t crc, std::string_view data) {
  const char* at = data.data();
  const char* const end = at + data.size();
  __m128i words[4] = {Load(at), Load(at + 16), Load(at + 32), Load(at + 48)};
  words[0] = _mm_xor_si128(words[0], _mm_cvtsi32_si128(static_cast<int>(~crc)));
  const __m128i fold_512 = Load(reinterpret_cast<const char*>(kFold512));
  for (at += kFoldBytes; end - at >= static_cast<ptrdiff_t>(kFoldBytes); at += kFoldBytes) {
    for (int i = 0; i < 4; ++i) words[i] = Fold(words[i], fold_512, Load(at + i * kWordBytes));
  }
  const __m128i fold_128 = Load(reinterpret_cast<const char*>(kFold128));
  __m128i word = words[0];
  for (int i = 1; i < 4; ++i) word = Fold(word, fold_128, words[i]);
  for (; at < end; at += kWordBytes) word = Fold(word, fold_128, Load(at));
  return ~Reduce(word, fold_128);
}

bool CanFold() {
  static const bool can = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  return can;
}

#endif

}  // namespace

uint32_t Crc32(uint32_t crc, std::string_view data) {
#if defined(__x86_64__)
  if (CanFold() && data.size() >= kFoldBytes) {
    const size_t whole_words = data.size() / kWordBytes * kWordBytes;
    crc = ByFolding(crc, data.substr(0, whole_words));
    data.remove_prefix(whole_words);
  }
#endif
  return data.empty() ? crc : ByZlib(crc, data);
}

}  // namespace muster::logs
