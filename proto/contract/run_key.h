// Run keys: "<instance>-<job>-<run>", e.g. "k7m2-42-1".
//
// Slurm knows a run by it as a job name, Kubernetes as a DNS label, a machine as a directory. It is
// unique for ever: the instance names the broker's database, and job numbers are never used again.
#ifndef MUSTER_PROTO_CONTRACT_RUN_KEY_H_
#define MUSTER_PROTO_CONTRACT_RUN_KEY_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster::contract {

// It has four characters of a-z and 0-9, the first a letter.
inline constexpr int kInstanceLength = 4;

struct RunKey {
  std::string instance;
  uint64_t job = 0;  // from 1
  uint32_t run = 0;  // from 1

  std::string ToString() const;
  // INVALID_ARGUMENT that quotes the text if it is not exactly what ToString makes.
  static absl::StatusOr<RunKey> Parse(std::string_view text);

  friend bool operator==(const RunKey&, const RunKey&) = default;
};

bool IsInstance(std::string_view text);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_RUN_KEY_H_
