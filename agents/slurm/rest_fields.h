// sbatch's options as fields of a submission to slurmrestd.
#ifndef MUSTER_AGENTS_SLURM_REST_FIELDS_H_
#define MUSTER_AGENTS_SLURM_REST_FIELDS_H_

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace muster::slurm {

// Values are typed from this number of the API on: v0.0.40. Before, most are sbatch's texts.
inline constexpr int kFirstTypedApi = 40;

// Adds what the option says ("--name=value" or "--name") to the job's fields, as the API with that
// number (42: v0.0.42) takes it, and to its environment what sbatch would tell the job's steps.
// Returns false, and adds nothing, if that API has nothing for it, or would take its value for
// another one.
bool AddRestOption(std::string_view word, int api, nlohmann::json* job,
                   std::map<std::string, std::string>* environment);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_REST_FIELDS_H_
