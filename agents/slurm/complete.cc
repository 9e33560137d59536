// Completes the request of a run by the cluster's settings.
#include <algorithm>

#include "agents/slurm/backend.h"
#include "agents/slurm/profile.h"
#include "contract/errors.h"
#include "contract/spank_options.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

// INVALID_ARGUMENT names an option of a plug-in that the operator does not allow.
absl::Status CheckSpankOptions(const v1::JobSpec& spec, const SlurmConfig& config) {
  v1::SlurmFacts facts;
  facts.mutable_spank_options()->Assign(config.spank_options.begin(), config.spank_options.end());
  for (const auto& [field, name] : contract::SpankOptionsOf(spec.slurm())) {
    if (std::string why = contract::WhyNoSpankOption(name, facts, config.cluster); !why.empty())
      return contract::BadField(field, fmt::format("--{} {}", name, why));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<agent::v1::Assignment> SlurmBackend::Complete(
    const agent::v1::Assignment& assignment,
    const absl::StatusOr<std::set<std::string>>& known) const {
  agent::v1::Assignment complete = assignment;
  absl::StatusOr<v1::JobSpec> spec = ApplyProfile(assignment.spec(), config_.profile);
  if (!spec.ok()) return spec.status();
  if (absl::Status good = CheckSpankOptions(*spec, config_); !good.ok()) return good;
  *complete.mutable_spec() = *std::move(spec);
  if (assignment.excluded_nodes().empty()) return complete;
  if (!known.ok()) return known.status();
  complete.clear_excluded_nodes();
  for (const std::string& name : assignment.excluded_nodes()) {
    if (known->contains(name)) complete.add_excluded_nodes(name);
  }
  return complete;
}

uint64_t SlurmBackend::MemoryLimitOf(const agents::RunHandle& run) const {
  if (run.assignment == nullptr) return 0;
  const absl::StatusOr<v1::JobSpec> spec = ApplyProfile(run.assignment->spec(), config_.profile);
  if (!spec.ok()) return 0;
  const auto& options = spec->slurm().extra_options();
  const bool is_otherwise =
      std::any_of(options.begin(), options.end(),
                  [](const std::string& option) { return option.starts_with("--mem"); });
  return is_otherwise ? 0 : spec->resources().memory_bytes();
}

absl::StatusOr<std::set<std::string>> SlurmBackend::KnownNodesOf(
    const agents::Assignments& assignments) {
  std::set<std::string> excluded;
  for (const auto& assignment : assignments)
    excluded.insert(assignment->excluded_nodes().begin(), assignment->excluded_nodes().end());
  if (excluded.empty()) return excluded;
  const absl::StatusOr<std::vector<std::string>> known =
      scheduler_->KnownNodes({excluded.begin(), excluded.end()});
  if (!known.ok()) return known.status();
  return std::set<std::string>(known->begin(), known->end());
}

}  // namespace muster::slurm
