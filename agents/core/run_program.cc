#include "agents/core/run_program.h"

#include <algorithm>

#include "contract/task_array.h"

namespace muster::agents {
namespace {

// Runs that share a node should not share a port: 1000 of them, from where PyTorch's default is.
constexpr uint64_t kFirstPort = 29500;
constexpr uint64_t kPorts = 1000;
// Keeps the roles of one job apart, so that neighbouring jobs seldom meet them.
constexpr uint64_t kRoleStride = 61;

// A share of a GPU counts as one: its run sees one device.
uint64_t GpusPerNode(const v1::JobSpec& spec) {
  uint64_t millis = 0;
  for (const v1::GpuRequest& gpus : spec.resources().gpus()) millis += gpus.count_millis();
  return (millis + 999) / 1000;
}

// Returns the words of the #! line: a program and, in one word, all that follows.
std::vector<std::string> Interpreter(std::string_view text) {
  if (!text.starts_with("#!")) return {"/bin/sh"};
  constexpr std::string_view kBlank = " \t\r";
  std::string_view line = text.substr(2, text.find('\n') - 2);
  line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
  line = line.substr(0, line.find_last_not_of(kBlank) + 1);
  if (line.empty()) return {"/bin/sh"};
  const size_t program_end = line.find_first_of(kBlank);
  std::vector<std::string> words = {std::string(line.substr(0, program_end))};
  if (program_end != std::string_view::npos) {
    const std::string_view rest = line.substr(program_end);
    words.emplace_back(rest.substr(rest.find_first_not_of(kBlank)));
  }
  return words;
}

// TAO's containers put their results into TAO_API_RESULTS_DIR/TAO_JOB_ID.
std::map<std::string, std::string> ResultVariables(const v1::JobSpec& spec) {
  const std::string& directory = spec.results_directory();
  const size_t slash = directory.rfind('/');
  if (slash == std::string::npos) return {};
  const std::string parent = slash == 0 ? "/" : directory.substr(0, slash);
  return {{"MUSTER_RESULTS_DIR", directory},
          {"TAO_RESULTS_ROOT", parent},
          {"TAO_API_RESULTS_DIR", parent},
          {"TAO_JOB_ID", directory.substr(slash + 1)}};
}

}  // namespace

std::string MasterPort(uint64_t job_id, int role) {
  return std::to_string(kFirstPort + (job_id + kRoleStride * static_cast<uint64_t>(role)) % kPorts);
}

std::map<std::string, std::string> RunVariables(const agent::v1::Assignment& assignment,
                                                std::string_view cluster,
                                                std::string_view run_directory) {
  const std::string nodes = std::to_string(std::max<uint64_t>(assignment.spec().nodes(), 1));
  const uint64_t gpus = GpusPerNode(assignment.spec());
  std::map<std::string, std::string> variables = ResultVariables(assignment.spec());
  variables.merge(std::map<std::string, std::string>{
      {"MASTER_PORT", MasterPort(assignment.job_id(), 0)},
      {"WORLD_SIZE", nodes},
      {"NNODES", nodes},
      {"NPROC_PER_NODE", std::to_string(std::max<uint64_t>(gpus, 1))},
      {"NUM_GPU_PER_NODE", std::to_string(gpus)},
      {"SKYPILOT_NUM_NODES", nodes},
      {"SKYPILOT_NUM_GPUS_PER_NODE", std::to_string(gpus)},
      {"SKYPILOT_TASK_ID", assignment.run_key()},
      {"MUSTER_CLUSTER", std::string(cluster)},
      {"MUSTER_NUM_NODES", nodes},
      {"MUSTER_JOB_ID", std::to_string(assignment.job_id())},
      {"MUSTER_RUN", std::to_string(assignment.run())},
      {"MUSTER_RUN_KEY", assignment.run_key()},
      {"MUSTER_RUN_DIR", std::string(run_directory)},
  });
  if (const auto task = contract::FindArrayTask(assignment.spec()); task.has_value()) {
    variables[std::string(contract::kArrayJobVariable)] =
        std::to_string(contract::ArrayNumber(assignment.job_id(), *task));
  }
  return variables;
}

std::string SecretFileName(std::string_view variable) {
  return std::string(kSecretFilePrefix) + std::string(variable);
}

std::map<std::string, std::string> SecretVariables(const agent::v1::Assignment& assignment,
                                                   std::string_view directory) {
  std::map<std::string, std::string> variables;
  for (const agent::v1::RunSecret& secret : assignment.secrets()) {
    variables[secret.variable()] =
        secret.as_file() ? std::string(directory) + "/" + SecretFileName(secret.variable())
                         : secret.value();
  }
  return variables;
}

std::map<std::string, std::string> RoleVariables(const agent::v1::Assignment& assignment,
                                                 int role) {
  const v1::Role& own = assignment.spec().roles(role);
  const std::string nodes = std::to_string(own.nodes());
  return {{"WORLD_SIZE", nodes},
          {"NNODES", nodes},
          {"SKYPILOT_NUM_NODES", nodes},
          {"MASTER_PORT", MasterPort(assignment.job_id(), role)},
          {"MUSTER_ROLE", own.name()}};
}

std::string RoleNodesVariable(const v1::Role& role) {
  std::string name = "MUSTER_ROLE_" + role.name() + "_NODES";
  for (char& c : name) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (c == '-') c = '_';
  }
  return name;
}

std::vector<std::string> WordsForScript(std::string_view text, const std::string& path,
                                        const std::vector<std::string>& arguments) {
  std::vector<std::string> words = Interpreter(text);
  words.push_back(path);
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

std::vector<std::string> WordsForCommand(const v1::Command& command,
                                         const std::string& script_path) {
  if (!command.has_script()) return {command.argv().args().begin(), command.argv().args().end()};
  return WordsForScript(command.script(), script_path,
                        {command.script_arguments().begin(), command.script_arguments().end()});
}

}  // namespace muster::agents
