// The options of sbatch, as data: how each is written, and which variable sets it.
#ifndef MUSTER_AGENTS_SLURM_SBATCH_OPTIONS_H_
#define MUSTER_AGENTS_SLURM_SBATCH_OPTIONS_H_

#include <string_view>
#include <vector>

namespace muster::slurm {

struct SbatchOption {
  enum class Argument {
    kNone,      // --hold, -H
    kRequired,  // --time=5, --time 5, -t5, -t 5
    kOptional,  // --exclusive, --exclusive=user: with '=' only, after a letter without a blank only
  };
  std::string_view name;  // without "--"
  char letter = 0;        // 0: it has none
  Argument argument = Argument::kRequired;
  std::string_view variable = {};    // what sets it in sbatch's environment; empty: nothing does
  std::string_view other_name = {};  // another spelling of `name`; empty: there is none
};

// Found by name or by a beginning that only it has, as getopt_long(3) does. `candidates` gets the
// names that a beginning fits when it fits several. Null: there is none, or several.
const SbatchOption* FindSbatchOption(std::string_view name,
                                     std::vector<std::string_view>* candidates);
const SbatchOption* FindSbatchOption(char letter);
const SbatchOption* FindSbatchVariable(std::string_view variable);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_SBATCH_OPTIONS_H_
