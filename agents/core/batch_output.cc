#include "agents/core/batch_output.h"

#include "contract/admission.h"

namespace muster::agents {

std::optional<v1::ClusterCheck> WarnOfBatchOutput(const v1::JobSpec& spec) {
  const v1::SlurmBatchScript& script = spec.slurm().batch_script();
  const auto named = [](const std::string& file) {
    return contract::IsNamedOutput(file) ? std::string_view(file) : "";
  };
  return contract::UnwrittenOutput(named(script.output()), named(script.error()));
}

}  // namespace muster::agents
