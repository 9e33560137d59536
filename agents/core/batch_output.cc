#include "agents/core/batch_output.h"

#include <string>
#include <string_view>

#include "contract/batch_output.h"
#include "contract/characters.h"
#include "fmt/format.h"

namespace muster::agents {
namespace {

// Returns whether somebody will look for the file: its user chose it, and not to be rid of the
// output.
bool IsNamed(std::string_view file) {
  return !file.empty() && file != "/dev/null" && file != contract::kBatchOutput &&
         file != contract::kArrayBatchOutput;
}

}  // namespace

std::optional<v1::ClusterCheck> WarnOfBatchOutput(const v1::JobSpec& spec) {
  const v1::SlurmBatchScript& script = spec.slurm().batch_script();
  const bool has_output = IsNamed(script.output());
  const bool has_error = IsNamed(script.error());
  if (!has_output && !has_error) return std::nullopt;
  const std::string_view field = has_output ? "output" : "error";
  v1::ClusterCheck check;
  check.set_subject(fmt::format("--{} (slurm.batch_script.{})", field, field));
  check.set_result(v1::CHECK_RESULT_WARN);
  check.set_seen(fmt::format("{}{} only Slurm writes; here the output is in muster logs ID alone",
                             contract::Quoted(has_output ? script.output() : script.error()),
                             has_output && has_error ? ", and what --error names," : ""));
  check.set_remedy("Read it there, or name a Slurm cluster (sbatch: --clusters).");
  return check;
}

}  // namespace muster::agents
