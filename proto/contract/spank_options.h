// Options of sbatch that a site's own SPANK plug-ins add. Muster does not know their meaning: jobs
// set them in slurm.extra_options, operators allow them by name, and sbatch gets them unchanged.
#ifndef MUSTER_PROTO_CONTRACT_SPANK_OPTIONS_H_
#define MUSTER_PROTO_CONTRACT_SPANK_OPTIONS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "muster/v1/cluster.pb.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::contract {

// The bound is more than any site has.
inline constexpr size_t kMaxSpankOptions = 100;
inline constexpr size_t kMaxSpankNameBytes = 63;

// Returns whether a plug-in may have an option of this name, which is given without "--": letters,
// digits, '-' and '_', the first one a letter or digit. A name of an option of sbatch's own or of
// Pyxis' is none, and no beginning of one is, because sbatch takes abbreviations.
bool IsSpankName(std::string_view name);

// Returns the name in "--name=value" or "--name" if it may be a plug-in's, or empty.
std::string_view SpankNameOf(std::string_view option);

// An option of a plug-in that a job sets.
struct SpankOption {
  std::string field;  // "slurm.extra_options[3]"
  std::string name;
};
std::vector<SpankOption> SpankOptionsOf(const v1::SlurmOptions& slurm);

// Returns the reason that the cluster does not take the plug-in's option of this name: "is no
// option ...". Empty: its operator allows it.
std::string WhyNoSpankOption(std::string_view name, const v1::SlurmFacts& facts,
                             std::string_view cluster);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_SPANK_OPTIONS_H_
