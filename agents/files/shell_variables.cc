#include "agents/files/shell_variables.h"

#include <set>
#include <string>
#include <string_view>

#include "contract/characters.h"
#include "contract/errors.h"

namespace muster::uploads {
namespace {

// Slurm's own variables and the loader's are for Slurm clusters, even if they were named.
bool IsForSlurmAlone(std::string_view name) {
  return name.starts_with("SLURM_") || name.starts_with("LD_") || name.starts_with("MUSTER_");
}

bool MeansSomethingElsewhere(const std::string& name, const std::string& value, bool is_named) {
  if (!contract::IsVariableName(name) || !contract::IsUtf8(value)) return false;
  if (is_named) return !IsForSlurmAlone(name);
  return !contract::IsOfTheRun(name) && !contract::IsOfTheSubmitHost(name);
}

}  // namespace

absl::StatusOr<contract::ShellVariables> FetchShellVariables(const v1::JobSpec& spec,
                                                             JobFiles* files,
                                                             absl::Duration patience) {
  if (!contract::HasShellEnvironment(spec)) return contract::ShellVariables();
  const std::string& sha256 = spec.slurm().batch_script().environment().file_sha256();
  if (files == nullptr) {
    return contract::BadField("slurm.batch_script.environment",
                              "this agent takes no files; submit the job to a cluster that does");
  }
  const absl::StatusOr<FileCache::Hold> hold =
      files->cache()->Fetch({{sha256, contract::kMaxShellBytes, /*is_exact=*/false}}, patience);
  if (!hold.ok()) return hold.status();
  const absl::StatusOr<std::string> text = files->cache()->ReadAll(sha256);
  if (!text.ok()) return text.status();
  return contract::ParseShellFile(*text);
}

absl::StatusOr<agent::v1::Assignment> WithShellVariables(const agent::v1::Assignment& assignment,
                                                         JobFiles* files) {
  agent::v1::Assignment whole = assignment;
  const absl::StatusOr<contract::ShellVariables> variables =
      FetchShellVariables(assignment.spec(), files);
  if (!variables.ok()) return variables.status();
  const auto& named = assignment.spec().slurm().batch_script().environment().named();
  const std::set<std::string_view> names(named.begin(), named.end());
  for (const auto& [name, value] : *variables) {
    if (MeansSomethingElsewhere(name, value, names.contains(name)))
      whole.mutable_spec()->mutable_env()->insert({name, value});
  }
  return whole;
}

}  // namespace muster::uploads
