// Filters of jobs.
#include "contract/filter.h"

#include "absl/time/time.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static_cast<void>(muster::contract::ParseFilter(muster::fuzz::TextOf(data, size),
                                                  absl::FromUnixSeconds(1'800'000'000)));
  return 0;
}
