// Where the output of a batch script goes that does not say it, as with sbatch.
#ifndef MUSTER_PROTO_CONTRACT_BATCH_OUTPUT_H_
#define MUSTER_PROTO_CONTRACT_BATCH_OUTPUT_H_

#include <string_view>

namespace muster::contract {

inline constexpr std::string_view kBatchOutput = "slurm-%j.out";
// Output name for a task of a job array.
inline constexpr std::string_view kArrayBatchOutput = "slurm-%A_%a.out";

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_BATCH_OUTPUT_H_
