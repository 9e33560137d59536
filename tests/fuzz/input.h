// The entry of a target.
#ifndef MUSTER_TESTS_FUZZ_INPUT_H_
#define MUSTER_TESTS_FUZZ_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace muster::fuzz {

// Returns the bytes as text; they end where the array ends, so that a read behind it is found.
inline std::string_view TextOf(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Ends the program if a claim about the result does not hold.
inline void Require(bool holds, const char* claim) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", claim);
  std::abort();
}

}  // namespace muster::fuzz

#endif  // MUSTER_TESTS_FUZZ_INPUT_H_
