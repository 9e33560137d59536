// AMD's GPUs, as rocm-smi lists them.
#ifndef MUSTER_AGENTS_MACHINES_AMD_GPUS_H_
#define MUSTER_AGENTS_MACHINES_AMD_GPUS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/machines/scheduling/hosts.h"

namespace muster::machines {

// Returns the words of the question, after the program's name.
std::vector<std::string> RocmSmiArguments();

// Its answer is {"card0": {"Card Series": "AMD Instinct MI300X", "Unique ID": "0x..."}, ...}, with
// warnings for people before it. Names of keys differ between versions. A GPU is called as
// ROCR_VISIBLE_DEVICES calls it: by its unique id, or by its number if it has none.
// INVALID_ARGUMENT quotes what cannot be read.
absl::StatusOr<std::vector<Gpu>> ParseRocmSmi(std::string_view answer);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_AMD_GPUS_H_
