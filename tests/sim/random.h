// Makes all chance of a simulation from one seed, the same on every machine and with every standard
// library.
#ifndef MUSTER_TESTS_SIM_RANDOM_H_
#define MUSTER_TESTS_SIM_RANDOM_H_

#include <cstdint>

#include "absl/time/time.h"

namespace muster::sim {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  // Uses SplitMix64 (https://prng.di.unimi.it/splitmix64.c).
  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // 0 .. bound - 1; the bias of the remainder does not matter here.
  uint64_t Below(uint64_t bound) { return Next() % bound; }
  bool Chance(double probability) {
    return static_cast<double>(Next() >> 11) * 0x1.0p-53 < probability;
  }
  absl::Duration Between(absl::Duration low, absl::Duration high) {
    const int64_t span = absl::ToInt64Microseconds(high - low);
    return low + absl::Microseconds(span <= 0 ? 0 : static_cast<int64_t>(Below(span)));
  }
  // Returns a time mostly near to `low` and sometimes up to `high`, as networks and disks take.
  absl::Duration Skewed(absl::Duration low, absl::Duration high) {
    const absl::Duration most = Chance(0.9) ? low + (high - low) / 20 : high;
    return Between(low, most);
  }

 private:
  uint64_t state_;
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_RANDOM_H_
