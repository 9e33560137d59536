#include "agents/hosts/remote_script.h"

#include <cerrno>
#include <cstdlib>
#include <random>
#include <system_error>

#include "agents/hosts/file_error.h"
#include "agents/hosts/shell_quote.h"
#include "fmt/format.h"

namespace muster::hosts {
namespace {

// The script has no '!', newline, backslash or single quote within the quotes: csh, fish and all
// POSIX shells read it alike. `read` takes single bytes and head exactly as many as it is told, so
// that the rest of the input is the program's.
#define MUSTER_READ_SCRIPT \
  "/bin/sh -c 'read -r muster_size && eval \"$(head -c \"$muster_size\")\"'"
constexpr std::string_view kKeepEnvironment = "exec " MUSTER_READ_SCRIPT;
// The host's PATH still says where programs are.
constexpr std::string_view kClearEnvironment =
    "exec env -i MUSTER_PATH=\"$PATH\" " MUSTER_READ_SCRIPT;
#undef MUSTER_READ_SCRIPT

// The kernel's bound for one argument (MAX_ARG_STRLEN).
constexpr size_t kMaxArgumentBytes = (128 << 10) - 1;
// Half of the kernel's bound for all of them; the environment has room beside them.
constexpr size_t kMaxArgumentsBytes = 1 << 20;

constexpr std::string_view kNotStarted = "not-started";

// Fails with the operating system's words about the directory, or about the program. `exec` that
// fails ends dash (the trap tells) and goes on in bash (the last line tells).
constexpr std::string_view kStartProgram = R"sh(
muster_fail() { trap - EXIT; printf '\n%s %s %s\n' "$muster_nonce" not-started "$1" >&2; exit 127; }
trap 'muster_fail $?' EXIT
command shopt -s execfail 2>/dev/null
if [ -n "$muster_dir" ] && ! cd -- "$muster_dir" 2>/dev/null; then
  LC_ALL=C stat -L -- "$muster_dir" >/dev/null || muster_fail directory
  [ -d "$muster_dir" ] || { echo ': Not a directory' >&2; muster_fail directory; }
  echo ': Permission denied' >&2
  muster_fail directory
fi
muster_found=
case $muster_program in
*/*) muster_found=$muster_program ;;
*)
  set -f
  IFS=:
  for muster_entry in $muster_path; do
    muster_file=${muster_entry:-.}/$muster_program
    [ -f "$muster_file" ] || continue
    [ -n "$muster_found" ] || muster_found=$muster_file
    [ -x "$muster_file" ] && { muster_found=$muster_file; break; }
  done
  unset IFS
  set +f
  ;;
esac
[ -n "$muster_found" ] || { echo ': No such file or directory' >&2; muster_fail program; }
[ -e "$muster_found" ] || LC_ALL=C stat -L -- "$muster_found" >/dev/null || muster_fail program
{ [ -f "$muster_found" ] && [ -x "$muster_found" ]; } ||
  { echo ': Permission denied' >&2; muster_fail program; }
)sh";

// The shell's own variables are set (and unset) after all that needs a clean one.
constexpr std::string_view kExec = R"sh(
exec "$muster_found" "$@"
muster_fail $?
)sh";

RemoteScript Wrap(std::string_view shell_command, std::string nonce, std::string_view body) {
  // A group is one command: the shell runs nothing of it before it has read its end.
  const std::string script =
      fmt::format("{{\nprintf '%s %s\\n' {0} \"$$\"\nprintf '%s\\n' {0} >&2\n{1}\n}}", nonce, body);
  return {.shell_command = shell_command,
          .header = fmt::format("{}\n{}", script.size(), script),
          .nonce = std::move(nonce)};
}

absl::Status CheckArguments(const Command& command) {
  if (command.argv.empty() || command.argv.front().empty()) {
    return absl::InvalidArgumentError("a command needs a program as its first word");
  }
  size_t total = 0;
  const auto check = [&](const std::string& text) {
    total += text.size() + 1;
    if (text.find('\0') != std::string::npos) {
      return absl::InvalidArgumentError(
          fmt::format("an argument or variable of \"{}\" has a NUL byte; remove it",
                      command.argv.front().c_str()));
    }
    if (text.size() > kMaxArgumentBytes || total > kMaxArgumentsBytes) {
      return absl::InvalidArgumentError(
          fmt::format("cannot start \"{}\": Argument list too long", command.argv.front()));
    }
    return absl::OkStatus();
  };
  for (const std::string& word : command.argv) {
    if (absl::Status status = check(word); !status.ok()) return status;
  }
  for (const auto& [name, value] : command.env) {
    if (absl::Status status = check(name + "=" + value); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// `command` keeps a variable that the shell does not give away from ending it.
std::string EnvironmentLines(const Command& command, bool is_cleared) {
  std::string lines;
  for (std::string_view name : command.unset_env) {
    if (is_cleared) break;
    if (!name.ends_with('*')) {
      lines += fmt::format("command unset {} 2>/dev/null\n", name);
      continue;
    }
    name.remove_suffix(1);
    lines += fmt::format(
        "for muster_name in $(env | sed -n 's/^\\({}[A-Za-z0-9_]*\\)=.*/\\1/p'); do command unset "
        "\"$muster_name\" 2>/dev/null; done\n",
        name);
  }
  // Variables that a shell adds by itself.
  if (is_cleared) lines += "unset PWD OLDPWD SHLVL\n";
  for (const auto& [name, value] : command.env) {
    lines += fmt::format("export {}={}\n", name, Quoted(value));
  }
  return lines;
}

absl::Status StartError(const Command& command, std::string_view what, int error,
                        std::string_view words) {
  const std::string where =
      what == "directory" ? fmt::format(" in \"{}\"", command.working_directory) : std::string();
  const std::string message =
      fmt::format("cannot start \"{}\"{}: {}", command.argv.front(), where,
                  error != 0 ? std::generic_category().message(error) : std::string(words));
  return NotStartedError(error, message);
}

}  // namespace

std::string NewNonce() {
  std::random_device device;
  std::string nonce;
  for (int i = 0; i < 4; ++i) nonce += fmt::format("{:08x}", device());
  return nonce;
}

RemoteScript WrapScript(std::string_view body) { return Wrap(kKeepEnvironment, NewNonce(), body); }

absl::StatusOr<RemoteScript> WrapCommand(const Command& command) {
  if (absl::Status status = CheckCommand(command); !status.ok()) return status;
  if (absl::Status status = CheckArguments(command); !status.ok()) return status;
  bool is_cleared = false;
  for (std::string_view name : command.unset_env) is_cleared = is_cleared || name == "*";
  std::string nonce = NewNonce();
  std::string body = fmt::format("muster_nonce={}\nmuster_dir={}\nmuster_program={}\n", nonce,
                                 Quoted(command.working_directory), Quoted(command.argv.front()));
  body += is_cleared ? "muster_path=$MUSTER_PATH\nPATH=$MUSTER_PATH\nunset MUSTER_PATH\n"
                     : "muster_path=$PATH\n";
  body += kStartProgram;
  if (is_cleared) body += "unset PATH\n";
  body += "set --";
  for (size_t i = 1; i < command.argv.size(); ++i) body += " " + Quoted(command.argv[i]);
  body += "\n" + EnvironmentLines(command, is_cleared) + std::string(kExec);
  return Wrap(is_cleared ? kClearEnvironment : kKeepEnvironment, std::move(nonce), body);
}

RemoteScript WrapKill(int pid) {
  return WrapScript(
      fmt::format("kill -KILL -{0} 2>/dev/null || kill -KILL {0} 2>/dev/null\nexit 0", pid));
}

RemoteScript WrapIsAlive(int pid) {
  return WrapScript(fmt::format("kill -0 {0} 2>/dev/null || [ -d /proc/{0} ]\nexit $?", pid));
}

absl::Status TakeNotStarted(const Command& command, std::string_view nonce,
                            std::string* stderr_data) {
  const std::string mark = fmt::format("\n{} {} ", nonce, kNotStarted);
  const size_t begin = stderr_data->rfind(mark);
  if (begin == std::string::npos) return absl::OkStatus();
  std::string_view what = std::string_view(*stderr_data).substr(begin + mark.size());
  while (what.ends_with('\n')) what.remove_suffix(1);
  std::string_view words = std::string_view(*stderr_data).substr(0, begin);
  while (words.ends_with('\n')) words.remove_suffix(1);
  int error = ErrnoFromWords(words);
  // dash has words of its own for a missing interpreter.
  if (error == 0 && what == "127") error = ENOENT;
  absl::Status status = StartError(command, what, error, words);
  stderr_data->resize(begin);
  return status;
}

FramedOutput::FramedOutput(std::string nonce, size_t max_bytes)
    : nonce_(std::move(nonce)), max_bytes_(max_bytes) {}

bool FramedOutput::Add(std::string_view bytes) {
  if (!has_begun_) {
    noise_ += bytes;
    const size_t begin = noise_.find(nonce_);
    const size_t end = begin == std::string::npos ? begin : noise_.find('\n', begin);
    if (end == std::string::npos) return noise_.size() <= kMaxNoiseBytes;
    has_begun_ = true;
    greeting_ = noise_.substr(begin + nonce_.size(), end - begin - nonce_.size());
    data_ = noise_.substr(end + 1);
    noise_.resize(begin);
  } else {
    data_ += bytes;
  }
  return data_.size() <= max_bytes_;
}

}  // namespace muster::hosts
