// Command lines of Slurm's programs, read as getopt_long(3) reads them: tables of options, and what
// was given. Pure.
#ifndef MUSTER_CLIENTS_CPP_SLURM_OPTIONS_H_
#define MUSTER_CLIENTS_CPP_SLURM_OPTIONS_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::client::slurm {

struct Option {
  enum class Argument {
    kNone,      // --hold, -H
    kRequired,  // --time=5, --time 5, -t5, -t 5
    kOptional,  // --exclusive, --exclusive=user: with '=' only, after a letter without a blank only
  };
  std::string_view name;  // without "--"
  char letter = 0;        // 0: it has none
  Argument argument = Argument::kRequired;
  std::string_view variable = {};    // what sets it in the environment; empty: nothing does
  std::string_view other_name = {};  // another spelling of `name`; empty: there is none
};
using OptionTable = std::span<const Option>;

// Found by name or by a beginning that only it has. `candidates` gets the names that a beginning
// fits when it fits several. Null: there is none, or several.
const Option* FindOption(OptionTable table, std::string_view name,
                         std::vector<std::string_view>* candidates);
const Option* FindOption(OptionTable table, char letter);

// One option that was given.
struct Setting {
  const Option* option = nullptr;
  std::string value;  // empty if the option has none
  // The option's place, such as "line 3", "SBATCH_PARTITION" or "command line".
  std::string where;
};

// The options that were given in one place or, after ReadSbatch, in all of them.
struct Settings {
  std::vector<Setting> settings;
  // Options that the table does not have, each with its place, as "--nosuch=1 (line 3)".
  std::vector<std::string> not_understood;

  // Returns the last setting of the option with this name; null if it was not given.
  const Setting* Find(std::string_view name) const;
};

inline constexpr std::string_view kCommandLine = "command line";

// A word and the place that it came from.
struct Word {
  std::string text;
  std::string where;
};

// Reads options up to the first word that is none; gives how many words they and their values were.
// INVALID_ARGUMENT, in getopt's words: an option lacks its argument or may have none, or is the
// beginning of several.
absl::StatusOr<size_t> ReadOptions(OptionTable table, const std::vector<Word>& words,
                                   Settings* out);

// A whole command line, options and operands in any order. INVALID_ARGUMENT: as above, or an option
// that the table does not have.
struct CommandWords {
  Settings options;
  std::vector<std::string> operands;
};
absl::StatusOr<CommandWords> ReadCommandWords(OptionTable table,
                                              const std::vector<std::string>& words);

}  // namespace muster::client::slurm

#endif  // MUSTER_CLIENTS_CPP_SLURM_OPTIONS_H_
