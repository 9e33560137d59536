#include "agents/kubernetes/manifest/run_secret.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "agents/core/backend.h"
#include "agents/core/run_program.h"
#include "agents/hosts/shell_quote.h"
#include "agents/kubernetes/manifest/pod_lease.h"
#include "contract/errors.h"
#include "contract/roles.h"
#include "contract/slurm_options.h"
#include "contract/slurm_variables.h"
#include "contract/units.h"
#include "contract/validate.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

using Variables = std::map<std::string, std::string>;

// Returns the hosts of `count` pods from the one of index `first` on.
std::string Hosts(const std::string& run_key, uint32_t first, uint32_t count, char separator) {
  std::string hosts;
  for (uint32_t i = 0; i < count; ++i) {
    if (i > 0) hosts += separator;
    hosts += HostOfPod(run_key, first + i);
  }
  return hosts;
}

// Adds the variables by which programs find each other. A list of hosts that no program could be
// given is left out: it would keep it from starting.
void AddPeers(const std::string& run_key, uint32_t first, uint32_t count, Variables* variables) {
  if (count <= 1) {
    (*variables)["MASTER_ADDR"] = "127.0.0.1";
    (*variables)["SKYPILOT_NODE_IPS"] = "127.0.0.1";
    return;
  }
  (*variables)["MASTER_ADDR"] = HostOfPod(run_key, first);
  std::string hosts = Hosts(run_key, first, count, '\n');
  if (hosts.size() < contract::kMaxArgBytes - std::string_view("SKYPILOT_NODE_IPS=").size())
    (*variables)["SKYPILOT_NODE_IPS"] = std::move(hosts);
}

// Returns the names that are the same in every pod, then the user's own, which win.
std::string Environment(const agent::v1::Assignment& assignment, std::string_view cluster,
                        const std::string& files, const std::string& work,
                        std::optional<int> role) {
  const v1::JobSpec& spec = assignment.spec();
  Variables variables = agents::RunVariables(assignment, cluster, work);
  variables.merge(contract::NamedSlurmVariables(spec, assignment.job_id()));
  variables["MUSTER_RESTART_COUNT"] = "0";
  const std::vector<uint32_t> first = contract::FirstRanks(spec);
  for (int i = 0; i < spec.roles_size(); ++i) {
    const v1::Role& one = spec.roles(i);
    variables[agents::RoleNodesVariable(one)] =
        Hosts(assignment.run_key(), first[static_cast<size_t>(i)], one.nodes(), ',');
  }
  if (role.has_value()) {
    for (const auto& [name, value] : agents::RoleVariables(assignment, *role))
      variables[name] = value;
    AddPeers(assignment.run_key(), first[static_cast<size_t>(*role)], spec.roles(*role).nodes(),
             &variables);
  } else {
    AddPeers(assignment.run_key(), 0, PodCount(spec), &variables);
  }
  for (const auto& [name, value] : spec.env()) variables[name] = value;
  if (role.has_value()) {
    for (const auto& [name, value] : spec.roles(*role).env()) variables[name] = value;
  }
  for (auto& [name, value] : agents::SecretVariables(assignment, files)) variables[name] = value;
  std::string text;
  for (const auto& [name, value] : variables)
    text += fmt::format("export {}={}\n", name, hosts::Quoted(value));
  return text;
}

// Sets a shell's positional parameters to the working directory and the words of the program, and
// MUSTER_ELSE where another directory will do.
void AddProgram(const v1::JobSpec& spec, const v1::Command& command, const std::string& name,
                const std::string& directory, const std::string& work,
                std::map<std::string, std::string>* files) {
  const std::string& wanted = spec.working_directory();
  std::string text;
  if (contract::IsDirectoryImplied(spec)) text = "MUSTER_ELSE=" + hosts::Quoted(work) + "\n";
  text += "set -- " + hosts::Quoted(wanted.empty() ? work : wanted);
  for (const std::string& word : agents::WordsForCommand(command, directory + "/" + name))
    text += " " + hosts::Quoted(word);
  (*files)[name + ".words"] = text + "\n";
  if (command.has_script()) (*files)[name] = command.script();
}

}  // namespace

std::map<std::string, std::string> MakeRunFiles(const agent::v1::Assignment& assignment,
                                                std::string_view cluster, const std::string& files,
                                                const std::string& work) {
  const v1::JobSpec& spec = assignment.spec();
  std::map<std::string, std::string> made;
  made[kStartFile] = StartScript();
  if (agents::KeepsLease(assignment)) made[kLeaseTermsFile] = LeaseTerms();
  made["environment"] = Environment(assignment, cluster, files, work, std::nullopt);
  for (const agent::v1::RunSecret& secret : assignment.secrets()) {
    if (secret.as_file()) made[agents::SecretFileName(secret.variable())] = secret.value();
  }
  if (!spec.setup().empty()) {
    v1::Command setup;
    setup.set_script(spec.setup());
    AddProgram(spec, setup, "setup", files, work, &made);
  }
  if (spec.roles().empty()) {
    AddProgram(spec, spec.command(), "command", files, work, &made);
    return made;
  }
  const std::vector<uint32_t> first = contract::FirstRanks(spec);
  for (int i = 0; i < spec.roles_size(); ++i) {
    const std::string name = fmt::format("role-{}", i);
    AddProgram(spec, spec.roles(i).command(), name, files, work, &made);
    made[name + ".environment"] = Environment(assignment, cluster, files, work, i);
    made["roles"] += fmt::format("{} {}\n", first[static_cast<size_t>(i)], i);
  }
  return made;
}

absl::Status CheckSecretSize(const v1::JobSpec& spec,
                             const std::map<std::string, std::string>& files) {
  size_t total = 0;
  for (const auto& [name, content] : files) total += content.size();
  if (total <= kMaxSecretBytes) return absl::OkStatus();
  size_t env = 0;
  for (const auto& [name, value] : spec.env()) env += name.size() + value.size();
  const std::pair<size_t, std::string_view> parts[] = {
      {spec.setup().size(), "setup"}, {spec.command().ByteSizeLong(), "command"}, {env, "env"}};
  const auto [bytes, field] = *std::max_element(std::begin(parts), std::end(parts));
  return contract::BadField(
      field, fmt::format("{} make the run's files {} long with the names and quotes that a shell "
                         "needs; a Secret of Kubernetes holds {}: keep long texts in files on the "
                         "cluster",
                         contract::FormatBytes(bytes), contract::FormatBytes(total),
                         contract::FormatBytes(kMaxSecretBytes)));
}

std::string HostOfPod(const std::string& run_key, uint32_t index) {
  return fmt::format("{0}-{1}.{0}", run_key, index);
}

uint32_t PodCount(const v1::JobSpec& spec) {
  if (spec.roles().empty()) return std::max<uint32_t>(spec.nodes(), 1);
  uint32_t count = 0;
  for (const v1::Role& role : spec.roles()) count += role.nodes();
  return count;
}

}  // namespace muster::kubernetes
