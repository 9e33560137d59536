#include "contract/slurm_variables.h"

#include <algorithm>
#include <array>

#include "contract/script_words.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

constexpr uint64_t kMillisOfACore = 1000;

std::string NumberOf(const v1::JobSpec&, uint64_t job_id) { return fmt::format("{}", job_id); }
std::string JobNameOf(const v1::JobSpec& spec, uint64_t) { return spec.name(); }
std::string CpusOf(const v1::JobSpec& spec, uint64_t) {
  return fmt::format("{}", std::max<uint64_t>(1, spec.resources().cpu_millis() / kMillisOfACore));
}

struct SlurmVariable {
  std::string_view name;
  std::string (*value)(const v1::JobSpec& spec, uint64_t job_id);
};
constexpr std::array kSlurmVariables = {
    SlurmVariable{"SLURM_JOB_ID", NumberOf},
    SlurmVariable{"SLURM_JOBID", NumberOf},
    SlurmVariable{"SLURM_JOB_NAME", JobNameOf},
    SlurmVariable{"SLURM_CPUS_PER_TASK", CpusOf},
};

const SlurmVariable* FindVariable(std::string_view name) {
  const auto* found = std::find_if(kSlurmVariables.begin(), kSlurmVariables.end(),
                                   [&](const SlurmVariable& one) { return one.name == name; });
  return found == kSlurmVariables.end() ? nullptr : found;
}

}  // namespace

bool IsGivenEverywhere(std::string_view variable) { return FindVariable(variable) != nullptr; }

std::map<std::string, std::string> NamedSlurmVariables(const v1::JobSpec& spec, uint64_t job_id) {
  std::map<std::string, std::string> named;
  if (!spec.slurm().has_batch_script()) return named;
  ForEachScriptWord(spec.command().script(), [&](size_t, std::string_view word) {
    if (const SlurmVariable* variable = FindVariable(word); variable != nullptr)
      named.emplace(word, variable->value(spec, job_id));
    return true;
  });
  return named;
}

}  // namespace muster::contract
