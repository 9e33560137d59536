#include "contract/slurm_only.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "contract/batch_output.h"
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

// Returns whether a word of a script works on Slurm only. A task of a job array finds its own
// variables on every kind of cluster.
bool IsOfSlurm(std::string_view word, bool is_task) {
  if (word.starts_with("SLURM_")) {
    const bool is_of_task = is_task && (word == kArrayJobVariable || IsArrayVariable(word));
    return !is_of_task && !IsGivenEverywhere(word);
  }
  return std::find(kCommands.begin(), kCommands.end(), word) != kCommands.end();
}

constexpr size_t kMaxNamed = 8;        // keeps the message readable
constexpr size_t kMaxShownBytes = 32;  // likewise

// `slurm.account "a1"` as a job file has it, or `--account=a1` as a batch script does; without a
// value that is long or no text.
std::string NameOf(const v1::SlurmOptions& options, const google::protobuf::FieldDescriptor& field,
                   bool is_script) {
  std::string value;
  if (field.type() == field.TYPE_STRING && !field.is_repeated())
    value = options.GetReflection()->GetString(options, &field);
  const bool is_shown = !value.empty() && value.size() <= kMaxShownBytes;
  if (!is_script)
    return fmt::format("slurm.{}{}", field.name(), is_shown ? " " + Quoted(value) : "");
  if (field.number() == v1::SlurmOptions::kTasksPerNodeFieldNumber)
    return fmt::format("--ntasks-per-node={}", options.tasks_per_node());
  const std::string option = absl::StrReplaceAll(field.name(), {{"_", "-"}});
  return fmt::format("--{}{}", option, is_shown ? "=" + value : "");
}

// `the job has slurm.account "a1", slurm.requeue`, or `the batch script has --account=a1,
// --begin=16:00`.
std::string WhatIsSet(const v1::SlurmOptions& options, bool is_script) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  options.GetReflection()->ListFields(options, &fields);
  std::vector<std::string> named;
  for (const auto* field : fields) {
    if (is_script && field->number() == v1::SlurmOptions::kExtraOptionsFieldNumber) {
      named.insert(named.end(), options.extra_options().begin(), options.extra_options().end());
    } else {
      named.push_back(NameOf(options, *field, is_script));
    }
  }
  if (named.size() > kMaxNamed) {
    named.resize(kMaxNamed);
    named.emplace_back("...");
  }
  return fmt::format("the {} has {}", is_script ? "batch script" : "job", fmt::join(named, ", "));
}

// Its user looks for the files that the script names, and only Slurm writes them.
std::string WhyOutput(const v1::SlurmBatchScript& script) {
  for (const auto& [option, file] :
       {std::pair("output", &script.output()), std::pair("error", &script.error())}) {
    if (IsNamedOutput(*file))
      return fmt::format(
          "the batch script names a file for its output (--{}={}); without the option it may run "
          "anywhere, and muster logs shows its output",
          option, file->size() <= kMaxShownBytes ? *file : "...");
  }
  return "";
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
  // The value that it has by default.
  if (others.tasks_per_node() == 1) others.clear_tasks_per_node();
  if (!spec.slurm().has_batch_script())
    return others.ByteSizeLong() > 0
               ? WhatIsSet(others, false)
               : "the job has a slurm section (in a SkyPilot task: infra: slurm)";
  if (!spec.image().empty())
    return "the batch script runs in a container of Pyxis (--container-image)";
  // Its options say it.
  if (ShapesPart(others, AllocationPart::kTasks)) others.clear_tasks_per_node();
  const bool has_gpus = !spec.resources().gpus().empty();
  auto& extra = *others.mutable_extra_options();
  extra.erase(std::remove_if(extra.begin(), extra.end(),
                             [&](const std::string& option) {
                               const bool is_told =
                                   has_gpus || PartOf(option) != AllocationPart::kGres;
                               return IsForMuster(option) || (is_told && IsInFields(option));
                             }),
              extra.end());
  if (others.ByteSizeLong() > 0) return WhatIsSet(others, true);
  if (spec.nodes() > 1) return "the batch script is for several nodes";
  if (!spec.slurm().batch_script().input().empty()) return "the batch script reads an input file";
  if (std::string why = WhyOutput(spec.slurm().batch_script()); !why.empty()) return why;
  const std::optional<ArrayTask> task = FindArrayTask(spec);
  if (task.has_value() && task->limit > 0)
    return "its array has a limit of simultaneous tasks (--array=...%N)";
  return WhyScript(spec.command().script(), task.has_value());
}

}  // namespace muster::contract
