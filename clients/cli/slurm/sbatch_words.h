// Errors and remarks for those who use sbatch: they name sbatch's options in place of the fields of
// a job file. Pure.
#ifndef MUSTER_CLIENTS_CLI_SLURM_SBATCH_WORDS_H_
#define MUSTER_CLIENTS_CLI_SLURM_SBATCH_WORDS_H_

#include <string>
#include <string_view>

#include "clients/cli/invocation.h"
#include "clients/cli/submission.h"

namespace muster::cli {

// The API's names of fields, and the options of sbatch that set them.
FieldFlags SbatchFlags();

// The text with options in place of fields: "ask for at most 1h (--time)". A field that already has
// its option beside it leaves the option alone. Text between double quotes stays as it is.
std::string InSbatchsWords(std::string_view text);

// The text as it is, or in sbatch's words if the verb is sbatch.
std::string InUsersWords(const Invocation& call, std::string text);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_SBATCH_WORDS_H_
