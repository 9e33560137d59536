#include "agents/machines/run_environment.h"

#include <cstdlib>

#include "agents/core/run_program.h"
#include "contract/slurm_variables.h"

namespace muster::machines {
namespace {

constexpr const char* kRankNames[] = {"NODE_RANK", "SKYPILOT_NODE_RANK", "MUSTER_NODE_RANK"};
constexpr const char* kBaseNames[] = {"HOME",  "LANG",   "LC_ALL", "LOGNAME", "PATH",
                                      "SHELL", "TMPDIR", "TZ",     "USER"};

}  // namespace

std::map<std::string, std::string> RunEnvironment(const v1::Assignment& assignment,
                                                  const std::string& cluster,
                                                  const std::string& run_directory,
                                                  const std::map<std::string, std::string>& base) {
  std::map<std::string, std::string> env = agent::RunVariables(assignment, cluster, run_directory);
  env.merge(contract::NamedSlurmVariables(assignment.spec(), assignment.job_id()));
  // A run has one node, this one.
  env["MASTER_ADDR"] = "127.0.0.1";
  env["SKYPILOT_NODE_IPS"] = "127.0.0.1";
  env["MUSTER_RESTART_COUNT"] = "0";
  for (const char* rank : kRankNames) env[rank] = "0";
  for (const auto& [name, value] : base) env.try_emplace(name, value);
  for (const auto& [name, value] : assignment.spec().env()) env[name] = value;
  env.erase(std::string(kDevicesVariable));
  return env;
}

std::map<std::string, std::string> RankEnvironment(const v1::Assignment& assignment,
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
  for (const char* name : kBaseNames) {
    if (const char* value = std::getenv(name)) base[name] = value;
  }
  base.try_emplace("PATH", "/usr/local/bin:/usr/bin:/bin");
  return base;
}

std::string DevicesValue(const Capacity& capacity, const NodeAllocation& node) {
  std::string value;
  for (const Gpu& gpu : capacity.gpus) {
    if (!node.gpus.contains(gpu.index)) continue;
    if (!value.empty()) value += ',';
    value += gpu.name;
  }
  return value;
}

}  // namespace muster::machines
