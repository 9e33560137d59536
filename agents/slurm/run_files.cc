#include "agents/slurm/run_files.h"

#include <algorithm>
#include <array>

#include "contract/errors.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

// Bash makes these read-only or gives them a meaning of its own, so a job cannot have them as it
// wants them.
constexpr std::array<std::string_view, 7> kBashVariables = {
    "BASHOPTS", "BASHPID", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"};

constexpr uint32_t kProgramMode = 0700;
// Runs that share a node should not share a port: 1000 of them, from where PyTorch's default is.
constexpr uint64_t kFirstPort = 29500;
constexpr uint64_t kPorts = 1000;

void Append(std::string_view word, std::string* file) {
  file->append(word);
  file->push_back('\0');
}

void AppendVariable(std::string_view name, std::string_view value, std::string* file) {
  Append(fmt::format("{}={}", name, value), file);
}

uint64_t GpusPerNode(const v1::JobSpec& spec) {
  uint64_t millis = 0;
  for (const v1::GpuRequest& gpus : spec.resources().gpus()) millis += gpus.count_millis();
  return millis / 1000;
}

// The names that are known before the launch, then the user's own: what a user sets explicitly,
// wins.
std::string Environment(const v1::Assignment& assignment, std::string_view cluster,
                        const RunPaths& paths) {
  const v1::JobSpec& spec = assignment.spec();
  const uint64_t gpus = GpusPerNode(spec);
  std::string file;
  AppendVariable("MASTER_PORT", std::to_string(kFirstPort + assignment.job_id() % kPorts), &file);
  AppendVariable("WORLD_SIZE", std::to_string(spec.nodes()), &file);
  AppendVariable("NNODES", std::to_string(spec.nodes()), &file);
  AppendVariable("NPROC_PER_NODE", std::to_string(std::max<uint64_t>(gpus, 1)), &file);
  AppendVariable("NUM_GPU_PER_NODE", std::to_string(gpus), &file);
  AppendVariable("SKYPILOT_NUM_NODES", std::to_string(spec.nodes()), &file);
  AppendVariable("SKYPILOT_NUM_GPUS_PER_NODE", std::to_string(gpus), &file);
  AppendVariable("SKYPILOT_TASK_ID", paths.run_key(), &file);
  AppendVariable("MUSTER_CLUSTER", cluster, &file);
  AppendVariable("MUSTER_NUM_NODES", std::to_string(spec.nodes()), &file);
  AppendVariable("MUSTER_JOB_ID", std::to_string(assignment.job_id()), &file);
  AppendVariable("MUSTER_RUN", std::to_string(assignment.run()), &file);
  AppendVariable("MUSTER_RUN_KEY", paths.run_key(), &file);
  AppendVariable("MUSTER_RUN_DIR", paths.directory(), &file);
  std::vector<std::string_view> names;
  for (const auto& [name, value] : spec.env()) names.push_back(name);
  std::sort(names.begin(), names.end());
  for (std::string_view name : names) AppendVariable(name, spec.env().at(std::string(name)), &file);
  return file;
}

// The working directory, then the words of the program.
std::string ProgramFile(const v1::JobSpec& spec, const RunPaths& paths,
                        const std::vector<std::string>& words) {
  std::string file;
  Append(spec.working_directory().empty() ? paths.work() : spec.working_directory(), &file);
  for (const std::string& word : words) Append(word, &file);
  return file;
}

// A script that names no interpreter is for /bin/sh.
std::vector<std::string> WordsForScript(std::string_view text, const std::string& path) {
  if (text.starts_with("#!")) return {path};
  return {"/bin/sh", path};
}

void AddScript(const v1::JobSpec& spec, const RunPaths& paths, std::string_view phase,
               const std::string& text, std::vector<RunFile>* files) {
  const std::string path = fmt::format("{}/{}", paths.directory(), phase);
  files->push_back({path, text, kProgramMode});
  files->push_back({path + ".argv", ProgramFile(spec, paths, WordsForScript(text, path))});
}

}  // namespace

absl::StatusOr<std::vector<RunFile>> MakeRunFiles(const v1::Assignment& assignment,
                                                  std::string_view cluster, const RunPaths& paths) {
  const v1::JobSpec& spec = assignment.spec();
  for (std::string_view name : kBashVariables) {
    if (!spec.env().contains(std::string(name))) continue;
    return contract::BadField(
        fmt::format("env[\"{}\"]", name),
        fmt::format("a job on Slurm starts from bash, which sets {} itself; choose another name",
                    name));
  }
  std::vector<RunFile> files;
  files.push_back({paths.script(), std::string(BatchScript()), kProgramMode});
  files.push_back({paths.directory() + "/environment", Environment(assignment, cluster, paths)});
  if (!spec.setup().empty()) AddScript(spec, paths, "setup", spec.setup(), &files);
  if (spec.command().has_script()) {
    AddScript(spec, paths, "command", spec.command().script(), &files);
  } else {
    const auto& args = spec.command().argv().args();
    files.push_back({paths.directory() + "/command.argv",
                     ProgramFile(spec, paths, {args.begin(), args.end()})});
  }
  return files;
}

}  // namespace muster::slurm
