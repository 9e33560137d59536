// The output files of a batch script that does not name them, as with sbatch.
#ifndef MUSTER_PROTO_CONTRACT_BATCH_OUTPUT_H_
#define MUSTER_PROTO_CONTRACT_BATCH_OUTPUT_H_

#include <string_view>

namespace muster::contract {

inline constexpr std::string_view kBatchOutput = "slurm-%j.out";
// Output name for a task of a job array.
inline constexpr std::string_view kArrayBatchOutput = "slurm-%A_%a.out";

// Returns whether somebody will look for the file of a script's output: its user chose it, and not
// to discard the output.
inline bool IsNamedOutput(std::string_view file) {
  return !file.empty() && file != "/dev/null" && file != kBatchOutput && file != kArrayBatchOutput;
}

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_BATCH_OUTPUT_H_
