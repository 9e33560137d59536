#include "agents/machines/run_environment.h"

#include <algorithm>
#include <cstdlib>

namespace muster::machines {
namespace {

constexpr const char* kBaseNames[] = {"HOME",  "LANG",   "LC_ALL", "LOGNAME", "PATH",
                                      "SHELL", "TMPDIR", "TZ",     "USER"};
// Runs that share the machine should not share a port: 1000 of them, from where PyTorch's default
// is.
constexpr uint64_t kFirstPort = 29500;
constexpr uint64_t kPorts = 1000;

uint64_t GpusPerNode(const v1::JobSpec& spec) {
  uint64_t millis = 0;
  for (const v1::GpuRequest& gpus : spec.resources().gpus()) millis += gpus.count_millis();
  return millis / 1000;
}

}  // namespace

std::map<std::string, std::string> RunEnvironment(const v1::Assignment& assignment,
                                                  const std::string& cluster,
                                                  const std::string& run_directory,
                                                  const std::map<std::string, std::string>& base) {
  const uint64_t gpus = GpusPerNode(assignment.spec());
  std::map<std::string, std::string> env = base;
  const std::map<std::string, std::string> ours = {
      {"MASTER_ADDR", "127.0.0.1"},
      {"MASTER_PORT", std::to_string(kFirstPort + assignment.job_id() % kPorts)},
      {"WORLD_SIZE", "1"},
      {"NNODES", "1"},
      {"NODE_RANK", "0"},
      {"NPROC_PER_NODE", std::to_string(std::max<uint64_t>(gpus, 1))},
      {"NUM_GPU_PER_NODE", std::to_string(gpus)},
      {"SKYPILOT_NODE_RANK", "0"},
      {"SKYPILOT_NODE_IPS", "127.0.0.1"},
      {"SKYPILOT_NUM_NODES", "1"},
      {"SKYPILOT_NUM_GPUS_PER_NODE", std::to_string(gpus)},
      {"SKYPILOT_TASK_ID", assignment.run_key()},
      {"MUSTER_CLUSTER", cluster},
      {"MUSTER_JOB_ID", std::to_string(assignment.job_id())},
      {"MUSTER_RUN", std::to_string(assignment.run())},
      {"MUSTER_RUN_KEY", assignment.run_key()},
      {"MUSTER_RUN_DIR", run_directory},
      {"MUSTER_NODE_RANK", "0"},
      {"MUSTER_NUM_NODES", "1"},
  };
  for (const auto& [name, value] : ours) env[name] = value;
  for (const auto& [name, value] : assignment.spec().env()) env[name] = value;
  env.erase(std::string(kDevicesVariable));
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

std::string DevicesValue(const Capacity& capacity, const std::set<uint32_t>& gpus) {
  std::string value;
  for (const Gpu& gpu : capacity.gpus) {
    if (!gpus.contains(gpu.index)) continue;
    if (!value.empty()) value += ',';
    value += gpu.name;
  }
  return value;
}

}  // namespace muster::machines
