#include "agents/slurm/run_files.h"

#include <algorithm>
#include <array>

#include "agents/core/run_program.h"
#include "contract/errors.h"
#include "contract/slurm_signal.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

// Bash makes these read-only or gives them a meaning of its own, so a job cannot have them as it
// wants them.
constexpr std::array<std::string_view, 7> kBashVariables = {
    "BASHOPTS", "BASHPID", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"};

constexpr uint32_t kProgramMode = 0700;

void Append(std::string_view word, std::string* file) {
  file->append(word);
  file->push_back('\0');
}

void AppendVariable(std::string_view name, std::string_view value, std::string* file) {
  Append(fmt::format("{}={}", name, value), file);
}

// The names that are known before the launch, then the user's own: what a user sets explicitly,
// wins.
std::string Environment(const v1::Assignment& assignment, std::string_view cluster,
                        const RunPaths& paths) {
  const v1::JobSpec& spec = assignment.spec();
  std::string file;
  for (const auto& [name, value] : agent::RunVariables(assignment, cluster, paths.directory())) {
    AppendVariable(name, value, &file);
  }
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

// A phase: its script, if it is one, and how it is started.
void AddProgram(const v1::JobSpec& spec, const RunPaths& paths, std::string_view phase,
                const v1::Command& command, std::vector<RunFile>* files) {
  const std::string path = fmt::format("{}/{}", paths.specs(), phase);
  if (command.has_script()) files->push_back({path, command.script(), kProgramMode});
  files->push_back(
      {path + ".argv", ProgramFile(spec, paths, agent::WordsForCommand(command, path))});
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
  files.push_back({paths.environment(), Environment(assignment, cluster, paths)});
  if (!spec.setup().empty()) {
    v1::Command setup;
    setup.set_script(spec.setup());
    AddProgram(spec, paths, "setup", setup, &files);
  }
  AddProgram(spec, paths, "command", spec.command(), &files);
  if (const auto signal = contract::ParseSlurmSignal(spec.slurm().signal()); signal.has_value()) {
    files.push_back(
        {paths.specs() + "/signal", signal->name + (signal->command_only ? " alone\n" : "\n")});
  }
  return files;
}

}  // namespace muster::slurm
