#include "agents/slurm/run_files.h"

#include <array>
#include <map>
#include <optional>
#include <set>

#include "agents/core/backend.h"
#include "agents/core/run_program.h"
#include "agents/slurm/leases.h"
#include "agents/slurm/shell_limits.h"
#include "contract/errors.h"
#include "contract/roles.h"
#include "contract/shell_environment.h"
#include "contract/slurm_signal.h"
#include "contract/task_array.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

// Bash makes these read-only or gives them a meaning of its own, so a job cannot have them as it
// wants them.
constexpr std::array<std::string_view, 7> kBashVariables = {
    "BASHOPTS", "BASHPID", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"};

constexpr uint32_t kProgramMode = 0700;

// A checkpoint of a large model takes minutes.
constexpr absl::Duration kStopGrace = absl::Minutes(2);

void Append(std::string_view word, std::string* file) {
  file->append(word);
  file->push_back('\0');
}

void AppendVariable(std::string_view name, std::string_view value, std::string* file) {
  Append(fmt::format("{}={}", name, value), file);
}

using Variables = std::map<std::string, std::string>;

void AppendSorted(const Variables& variables, std::string* file) {
  for (const auto& [name, value] : variables) AppendVariable(name, value, file);
}

// Holds the variables of the submitter's shell, in two groups: those that the user named win over
// all that the run has, the others lose. Slurm's own never win, as with sbatch.
struct Shell {
  Variables named;
  Variables others;
};

Shell ShellOf(const v1::JobSpec& spec, const contract::ShellVariables& variables) {
  const auto& named = spec.slurm().batch_script().environment().named();
  const std::set<std::string_view> names(named.begin(), named.end());
  Shell shell;
  for (const auto& [name, value] : variables) {
    if (IsShellLimit(name) || name == contract::kSubmitDirectory) continue;
    if (names.contains(name) && !name.starts_with("SLURM_")) {
      shell.named.emplace(name, value);
    } else if (contract::MayBeSet(name, value) && !contract::IsOfTheRun(name)) {
      shell.others.emplace(name, value);
    }
  }
  return shell;
}

// The names that are known before the launch come first, then the user's own: an explicit setting
// of a user wins. `named`: those of the submitter's shell that are the user's own. `role`: whose
// environment it is, by its number; nothing: the job's.
std::string Environment(const agent::v1::Assignment& assignment, std::string_view cluster,
                        const RunPaths& paths, const Variables& named,
                        std::optional<int> role = std::nullopt) {
  const v1::JobSpec& spec = assignment.spec();
  Variables variables = agents::RunVariables(assignment, cluster, paths.directory());
  Variables of_the_user(spec.env().begin(), spec.env().end());
  of_the_user.insert(named.begin(), named.end());
  if (role.has_value()) {
    for (const auto& [name, value] : agents::RoleVariables(assignment, *role))
      variables[name] = value;
    for (const auto& [name, value] : spec.roles(*role).env()) of_the_user[name] = value;
  }
  std::string file;
  AppendSorted(variables, &file);
  AppendSorted(of_the_user, &file);
  return file;
}

// Adds the variables of the job's secrets, and those that are in files. The nodes take all of them
// away when the run has ended.
void AddSecrets(const agent::v1::Assignment& assignment, const RunPaths& paths,
                std::vector<RunFile>* files) {
  if (assignment.secrets().empty()) return;
  const std::string directory = paths.environment_of("");
  RunFile& file = files->emplace_back(RunFile{paths.environment_of("secrets"), ""});
  AppendSorted(agents::SecretVariables(assignment, directory.substr(0, directory.size() - 1)),
               &file.content);
  for (const agent::v1::RunSecret& secret : assignment.secrets()) {
    if (!secret.as_file()) continue;
    files->push_back(
        {paths.environment_of(agents::SecretFileName(secret.variable())), secret.value()});
  }
}

// Returns the working directory, then the words of the program.
std::string ProgramFile(const v1::JobSpec& spec, const RunPaths& paths,
                        const std::vector<std::string>& words) {
  std::string file;
  Append(spec.working_directory().empty() ? paths.work() : spec.working_directory(), &file);
  for (const std::string& word : words) Append(word, &file);
  return file;
}

// Adds a phase: its script, if it is one, and how it is started.
void AddProgram(const v1::JobSpec& spec, const RunPaths& paths, std::string_view phase,
                const v1::Command& command, std::vector<RunFile>* files) {
  const std::string path = fmt::format("{}/{}", paths.specs(), phase);
  if (command.has_script()) files->push_back({path, command.script(), kProgramMode});
  files->push_back(
      {path + ".argv", ProgramFile(spec, paths, agents::WordsForCommand(command, path))});
}

// Adds a line for each role: its name, its first node, how many nodes, the rank of the first one,
// and 1 if it leads, else 0.
void AddRoles(const agent::v1::Assignment& assignment, std::string_view cluster,
              const RunPaths& paths, std::vector<RunFile>* files) {
  const v1::JobSpec& spec = assignment.spec();
  const std::vector<uint32_t> first_ranks = contract::FirstRanks(spec);
  std::string lines;
  for (int i = 0; i < spec.roles_size(); ++i) {
    const v1::Role& role = spec.roles(i);
    const std::string program = fmt::format("role-{}", i);
    lines += fmt::format("{} {} {} {} {:d}\n", role.name(), role.first_node(), role.nodes(),
                         first_ranks[static_cast<size_t>(i)], role.leads());
    files->push_back(
        {paths.environment_of(program), Environment(assignment, cluster, paths, {}, i)});
    AddProgram(spec, paths, program, role.command(), files);
  }
  files->push_back({paths.specs() + "/roles", lines});
}

// The file for a batch script's start: the job's name, whether its files are appended to, and the
// patterns of their names; for a task of a job array the numbers of the array and of the task; and
// the directory where its user stood, if it starts elsewhere.
std::string BatchScriptFile(const agent::v1::Assignment& assignment,
                            const contract::ShellVariables& variables) {
  const v1::JobSpec& spec = assignment.spec();
  const v1::SlurmBatchScript& script = spec.slurm().batch_script();
  std::string file;
  Append(spec.name(), &file);
  Append(script.append() ? "1" : "0", &file);
  for (const std::string* pattern : {&script.input(), &script.output(), &script.error()})
    Append(*pattern, &file);
  const auto task = contract::FindArrayTask(spec);
  Append(task ? fmt::format("{}", contract::ArrayNumber(assignment.job_id(), *task)) : "", &file);
  Append(task ? fmt::format("{}", task->id) : "", &file);
  const auto stood = variables.find(std::string(contract::kSubmitDirectory));
  Append(stood == variables.end() ? "" : stood->second, &file);
  return file;
}

// Returns the file for slurm.timeout: the time at which the programs are stopped, whether the job
// may be requeued then, the time between TERM and KILL, and the number of starts after which it is
// put back no more. The cluster's own limit for requeues, which the job does not know, shows when
// one is asked for.
std::string TimeoutFile(const v1::SlurmOptions& slurm, uint32_t max_requeues) {
  const bool may_requeue = !slurm.has_requeue() || slurm.requeue();
  return fmt::format("{} {} {} {}\n", slurm.timeout().seconds(), may_requeue ? 1 : 0,
                     absl::ToInt64Seconds(kStopGrace), max_requeues);
}

// `env` has variables by name.
template <typename Map>
absl::Status CheckNames(std::string_view field, const Map& env) {
  for (std::string_view name : kBashVariables) {
    if (!env.contains(std::string(name))) continue;
    return contract::BadField(
        fmt::format("{}[\"{}\"]", field, name),
        fmt::format("a job on Slurm starts from bash, which sets {} itself; choose another name",
                    name));
  }
  return absl::OkStatus();
}

// The variables of the submitter's shell that lose against all others, and how long the node may
// look for the account's login environment.
void AddShell(const v1::JobSpec& spec, const Shell& shell, const RunPaths& paths,
              std::vector<RunFile>* files) {
  if (!shell.others.empty()) {
    RunFile& file = files->emplace_back(RunFile{paths.environment_of("shell"), ""});
    AppendSorted(shell.others, &file.content);
  }
  const v1::ShellEnvironment& environment = spec.slurm().batch_script().environment();
  if (environment.has_login_timeout()) {
    files->push_back(
        {paths.specs() + "/login", fmt::format("{}\n", environment.login_timeout().seconds())});
  }
}

}  // namespace

absl::StatusOr<std::vector<RunFile>> MakeRunFiles(const agent::v1::Assignment& assignment,
                                                  std::string_view cluster, const RunPaths& paths,
                                                  uint32_t max_timeout_requeues,
                                                  const contract::ShellVariables& variables,
                                                  const std::set<std::string>& taken_limits) {
  const v1::JobSpec& spec = assignment.spec();
  const Shell shell = ShellOf(spec, variables);
  if (absl::Status good = CheckNames("env", spec.env()); !good.ok()) return good;
  std::set<std::string> secrets;
  for (const v1::SecretUse& use : spec.secrets()) secrets.insert(use.variable());
  if (absl::Status good = CheckNames("secrets", secrets); !good.ok()) return good;
  if (absl::Status good = CheckNames("slurm.batch_script.environment.named", shell.named);
      !good.ok())
    return good;
  for (int i = 0; i < spec.roles_size(); ++i) {
    if (absl::Status good = CheckNames(fmt::format("roles[{}].env", i), spec.roles(i).env());
        !good.ok()) {
      return good;
    }
  }
  std::vector<RunFile> files;
  files.push_back({paths.script(), std::string(BatchScript()), kProgramMode});
  files.push_back(
      {paths.environment_of("environment"), Environment(assignment, cluster, paths, shell.named)});
  AddSecrets(assignment, paths, &files);
  AddShell(spec, shell, paths, &files);
  if (std::string limits = LimitsFile(variables, taken_limits); !limits.empty())
    files.push_back({paths.specs() + "/limits", std::move(limits)});
  if (!spec.setup().empty()) {
    v1::Command setup;
    setup.set_script(spec.setup());
    AddProgram(spec, paths, "setup", setup, &files);
  }
  if (spec.roles().empty()) {
    AddProgram(spec, paths, "command", spec.command(), &files);
  } else {
    AddRoles(assignment, cluster, paths, &files);
  }
  if (spec.slurm().has_batch_script())
    files.push_back({paths.specs() + "/batch_script", BatchScriptFile(assignment, variables)});
  if (agents::KeepsLease(assignment)) files.push_back({paths.specs() + "/lease", LeaseTermsFile()});
  if (spec.slurm().has_timeout())
    files.push_back({paths.specs() + "/timeout", TimeoutFile(spec.slurm(), max_timeout_requeues)});
  const auto signal = contract::ParseSlurmSignal(spec.slurm().signal());
  if (signal.has_value() && signal->name != contract::kKill) {
    files.push_back(
        {paths.specs() + "/signal", signal->name + (signal->command_only ? " alone\n" : "\n")});
  }
  return files;
}

}  // namespace muster::slurm
