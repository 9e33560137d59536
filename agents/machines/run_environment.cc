#include "agents/machines/run_environment.h"

#include <algorithm>
#include <cstdlib>

#include "agents/core/run_program.h"
#include "agents/machines/run_files.h"
#include "contract/slurm_variables.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

constexpr const char* kRankNames[] = {"NODE_RANK", "SKYPILOT_NODE_RANK", "MUSTER_NODE_RANK"};

}  // namespace

std::map<std::string, std::string> RunEnvironment(const agent::v1::Assignment& assignment,
                                                  const std::string& cluster,
                                                  const std::string& run_directory,
                                                  const std::map<std::string, std::string>& base) {
  std::map<std::string, std::string> env = agents::RunVariables(assignment, cluster, run_directory);
  env.merge(contract::NamedSlurmVariables(assignment.spec(), assignment.job_id()));
  // A run has one node, this one.
  env["MASTER_ADDR"] = "127.0.0.1";
  env["SKYPILOT_NODE_IPS"] = "127.0.0.1";
  env["MUSTER_RESTART_COUNT"] = "0";
  for (const char* rank : kRankNames) env[rank] = "0";
  for (const auto& [name, value] : base) env.try_emplace(name, value);
  for (const auto& [name, value] : assignment.spec().env()) env[name] = value;
  for (const std::string_view name : {kCudaVariable, kHipVariable, kRocrVariable})
    env.erase(std::string(name));
  return env;
}

std::map<std::string, std::string> RankEnvironment(const agent::v1::Assignment& assignment,
                                                   const std::string& cluster,
                                                   const std::string& run_directory, size_t rank,
                                                   const std::vector<std::string>& addresses) {
  std::map<std::string, std::string> env = RunEnvironment(assignment, cluster, run_directory, {});
  const auto& own = assignment.spec().env();
  const auto set = [&](const std::string& name, const std::string& value) {
    if (!own.contains(name)) env[name] = value;
  };
  std::string lines;
  for (const std::string& address : addresses) lines += (lines.empty() ? "" : "\n") + address;
  set("MASTER_ADDR", addresses[0]);
  set("SKYPILOT_NODE_IPS", lines);
  for (const char* name : kRankNames) set(name, std::to_string(rank));
  return env;
}

std::map<std::string, std::string> BaseEnvironment() {
  std::map<std::string, std::string> base;
  for (const char* name : kBaseVariables) {
    if (const char* value = std::getenv(name)) base[name] = value;
  }
  base.try_emplace("PATH", "/usr/local/bin:/usr/bin:/bin");
  return base;
}

std::map<std::string, std::string> BaseEnvironmentOfUser() {
  std::map<std::string, std::string> base = BaseEnvironment();
  for (const char* name : {"HOME", "LOGNAME", "SHELL", "TMPDIR", "USER"}) base.erase(name);
  return base;
}

std::string DeviceNames(const Capacity& capacity, const NodeAllocation& node) {
  std::vector<std::string> names;
  for (const Gpu& gpu : capacity.gpus) {
    if (node.gpus.contains(gpu.index)) names.push_back(gpu.name);
  }
  return fmt::format("{}", fmt::join(names, ","));
}

std::vector<std::string> DeviceVariables(const Capacity& capacity, const NodeAllocation& node) {
  const std::string names = DeviceNames(capacity, node);
  const auto is_amd = [](const Gpu& gpu) { return gpu.is_amd; };
  if (std::none_of(capacity.gpus.begin(), capacity.gpus.end(), is_amd))
    return {fmt::format("{}={}", kCudaVariable, names)};
  // A run has GPUs of one type.
  const bool has_amd = std::any_of(capacity.gpus.begin(), capacity.gpus.end(), [&](const Gpu& gpu) {
    return gpu.is_amd && node.gpus.contains(gpu.index);
  });
  std::string numbers;
  for (size_t i = 0; has_amd && i < node.gpus.size(); ++i)
    numbers += fmt::format("{}{}", i == 0 ? "" : ",", i);
  return {fmt::format("{}={}", kCudaVariable, has_amd ? numbers : names),
          fmt::format("{}={}", kHipVariable, numbers),
          fmt::format("{}={}", kRocrVariable, has_amd ? names : "")};
}

}  // namespace muster::machines
