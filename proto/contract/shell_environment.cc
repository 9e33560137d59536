#include "contract/shell_environment.h"

#include <algorithm>
#include <array>

#include "contract/characters.h"
#include "contract/duration_text.h"
#include "contract/file_tree.h"
#include "contract/slurm_container.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

constexpr int64_t kMaxLoginSeconds = 3600;
constexpr std::string_view kFunction = "BASH_FUNC_";

// A pattern is a name, or the beginning of names if it ends with '*', or their end if it begins
// with '*'.
bool Fits(std::string_view name, std::string_view pattern) {
  if (pattern.ends_with('*')) return name.starts_with(pattern.substr(0, pattern.size() - 1));
  return pattern.starts_with('*') ? name.ends_with(pattern.substr(1)) : name == pattern;
}

template <size_t kSize>
bool FitsAny(std::string_view name, const std::array<std::string_view, kSize>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](std::string_view pattern) { return Fits(name, pattern); });
}

constexpr auto kOfTheRun = std::to_array<std::string_view>(
    {// Muster's, as agents/core/run_program.h and the backends set them.
     "MUSTER_*", "SKYPILOT_*", "WORLD_SIZE", "NNODES", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT",
     "NUM_GPU_PER_NODE", "NPROC_PER_NODE", "TAO_RESULTS_ROOT", "TAO_API_RESULTS_DIR", "TAO_JOB_ID",
     // The account's.
     "HOME", "USER", "LOGNAME",
     // The node's.
     "HOSTNAME", "ENVIRONMENT", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
     "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK",
     // sbatch keeps it, too.
     "_SLURM_SPANK_*",
     // Those that a shell makes for itself, or lets nobody set.
     "_", "PWD", "SHLVL", "BASHOPTS", "BASHPID", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS",
     "UID", "BASH_ARGV0", "FUNCNAME"});

constexpr auto kOfTheSubmitHost = std::to_array<std::string_view>(
    {// Programs and libraries.
     "*PATH", "*_HOME", "LD_*", "PERL5LIB", "*_INCLUDE_PATH", "SHELL",
     // Module systems and environments of Python.
     "MODULEPATH*", "MODULESHOME", "MODULES_*", "LOADEDMODULES*", "_LMFILES_*", "LMOD_*",
     "__LMOD_*", "_ModuleTable*", "__MODULES_*", "EBROOT*", "EBVERSION*", "EBDEVEL*", "SPACK_*",
     "CONDA_*", "_CE_*", "VIRTUAL_ENV*", "PYTHONHOME", "PYTHONSTARTUP",
     // The session.
     "TERM", "TERM_*", "TERMCAP", "COLORTERM", "COLUMNS", "LINES", "LS_COLORS", "DISPLAY",
     "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_*", "SSH_*", "DBUS_*", "SUDO_*", "MAIL", "OLDPWD",
     "LANG", "LANGUAGE", "LC_*", "TMPDIR", "TMP", "TEMP",
     // These are Slurm's: libraries take them as a sign that Slurm is there.
     "SLURM_*", "SBATCH_*", "SRUN_*", "PYXIS_*", "BASH_*"});

}  // namespace

std::string FormatShellFile(const ShellVariables& variables) {
  std::string text;
  for (const auto& [name, value] : variables) {
    text += fmt::format("{}={}", name, value);
    text += '\0';
  }
  return text;
}

absl::StatusOr<ShellVariables> ParseShellFile(std::string_view text) {
  if (text.size() > kMaxShellBytes) {
    return absl::InvalidArgumentError(
        fmt::format("the variables of the submitter's shell have {} "
                    "bytes; {} are the most",
                    text.size(), kMaxShellBytes));
  }
  ShellVariables variables;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find('\0'));
    const size_t equals = one.find('=');
    if (one.size() == text.size() || equals == 0 || equals == one.npos) {
      return absl::InvalidArgumentError(
          "the variables of the submitter's shell are damaged: each is NAME=value with a NUL byte "
          "behind it");
    }
    variables.insert_or_assign(std::string(one.substr(0, equals)),
                               std::string(one.substr(equals + 1)));
    text.remove_prefix(one.size() + 1);
  }
  return variables;
}

std::string_view ShellFunctionOf(std::string_view variable, std::string_view value) {
  const bool is_function =
      variable.starts_with(kFunction) && variable.ends_with("%%") && value.starts_with("() {");
  if (!is_function) return "";
  variable.remove_prefix(kFunction.size());
  variable.remove_suffix(2);
  // Bash allows more in the name of a function; nobody uses it.
  const bool is_name =
      !variable.empty() && !IsDigit(variable[0]) &&
      std::all_of(variable.begin(), variable.end(), [](char c) {
        return IsLetter(c) || IsDigit(c) || std::string_view("_-:.+@").find(c) != std::string::npos;
      });
  return is_name && variable[0] != '-' ? variable : "";
}

bool MayBeSet(std::string_view variable, std::string_view value) {
  return IsVariableName(variable) || !ShellFunctionOf(variable, value).empty();
}

bool IsOfTheRun(std::string_view variable) { return FitsAny(variable, kOfTheRun); }

bool IsOfTheSubmitHost(std::string_view variable) { return FitsAny(variable, kOfTheSubmitHost); }

bool HasShellEnvironment(const v1::JobSpec& spec) {
  return spec.slurm().batch_script().has_environment();
}

void CheckShellEnvironment(const v1::SlurmBatchScript& script, FieldErrors* errors) {
  if (!script.has_environment()) return;
  const std::string field = "slurm.batch_script.environment";
  const v1::ShellEnvironment& shell = script.environment();
  if (!IsSha256(shell.file_sha256())) {
    errors->Add(field + ".file_sha256",
                fmt::format("{} is no SHA-256; use the 64 digits 0-9 and a-f of the file's",
                            Quoted(shell.file_sha256())));
  }
  if (shell.named_size() > kMaxNamedVariables) {
    errors->Add(field + ".named", fmt::format("{} variables; use at most {}", shell.named_size(),
                                              kMaxNamedVariables));
    return;
  }
  for (int i = 0; i < shell.named_size(); ++i) {
    const std::string& name = shell.named(i);
    if (IsVariableName(name) && name.size() <= kMaxVariableNameBytes &&
        !name.starts_with("MUSTER_"))
      continue;
    errors->Add(fmt::format("{}.named[{}]", field, i),
                fmt::format("{} is not a variable that a job may set; use [A-Za-z_][A-Za-z0-9_]*, "
                            "up to {} bytes, and not MUSTER_*",
                            Quoted(name), kMaxVariableNameBytes));
  }
  if (!shell.has_login_timeout()) return;
  const auto& timeout = shell.login_timeout();
  if (timeout.seconds() < 1 || timeout.seconds() > kMaxLoginSeconds || timeout.nanos() != 0) {
    errors->Add(
        field + ".login_timeout",
        fmt::format("{} is out of range; use whole seconds, 1s to 1h", DurationText(timeout)));
  }
}

}  // namespace muster::contract
