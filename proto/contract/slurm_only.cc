#include "contract/slurm_only.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "contract/characters.h"
#include "contract/script_words.h"
#include "contract/slurm_options.h"
#include "contract/slurm_variables.h"
#include "contract/task_array.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "google/protobuf/descriptor.h"

namespace muster::contract {
namespace {

// Commands that work inside a Slurm job only.
constexpr std::array<std::string_view, 15> kCommands = {
    "srun",    "sbatch", "sbcast", "scontrol", "squeue",   "sacct", "sattach", "strigger",
    "scancel", "sstat",  "sinfo",  "salloc",   "sacctmgr", "sprio", "sreport"};

// Whether a word of a script works on Slurm only. A task of a job array finds its own variables on
// every kind of cluster.
bool IsOfSlurm(std::string_view word, bool is_task) {
  if (word.starts_with("SLURM_")) {
    const bool is_of_task = is_task && (word == kArrayJobVariable || IsArrayVariable(word));
    return !is_of_task && !IsGivenEverywhere(word);
  }
  return std::find(kCommands.begin(), kCommands.end(), word) != kCommands.end();
}

// `the job has slurm.account "a1", slurm.requeue`: short texts with their values.
std::string WhatIsSet(const v1::SlurmOptions& options) {
  constexpr size_t kMaxNamed = 8;        // keeps the message readable
  constexpr size_t kMaxShownBytes = 32;  // likewise
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  options.GetReflection()->ListFields(options, &fields);
  std::vector<std::string> named;
  for (const auto* field : fields) {
    if (named.size() == kMaxNamed) {
      named.push_back("...");
      break;
    }
    std::string text = fmt::format("slurm.{}", field->name());
    if (field->type() == field->TYPE_STRING && !field->is_repeated()) {
      const std::string value = options.GetReflection()->GetString(options, field);
      if (value.size() <= kMaxShownBytes) text += fmt::format(" {}", Quoted(value));
    }
    named.push_back(std::move(text));
  }
  return fmt::format("the job has {}", fmt::join(named, ", "));
}

std::string WhyScript(std::string_view script, bool is_task) {
  std::string why;
  ForEachScriptWord(script, [&](size_t line, std::string_view word) {
    if (IsOfSlurm(word, is_task))
      why = fmt::format("line {} of the batch script names {}", line, word);
    return why.empty();
  });
  return why;
}

}  // namespace

std::string WhySlurmOnly(const v1::JobSpec& spec) {
  if (!spec.has_slurm()) return "";
  v1::SlurmOptions others = spec.slurm();
  others.clear_batch_script();
  // What it is without being asked for.
  if (others.tasks_per_node() == 1) others.clear_tasks_per_node();
  if (!spec.slurm().has_batch_script())
    return others.ByteSizeLong() > 0 ? WhatIsSet(others) : "the job has a slurm section";
  const auto& extra = others.extra_options();
  if (std::all_of(extra.begin(), extra.end(), IsForMuster)) others.clear_extra_options();
  if (others.ByteSizeLong() > 0) return WhatIsSet(others);
  if (spec.nodes() > 1) return "the batch script is for several nodes";
  if (!spec.slurm().batch_script().input().empty()) return "the batch script reads an input file";
  return WhyScript(spec.command().script(), FindArrayTask(spec).has_value());
}

}  // namespace muster::contract
