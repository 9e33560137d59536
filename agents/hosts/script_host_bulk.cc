// Makes ScriptHost's calls for many runs at once: one process of the host's, or none, serves all of
// them.
#include <map>
#include <set>

#include "agents/hosts/file_error.h"
#include "agents/hosts/script_host.h"
#include "agents/hosts/shell_quote.h"
#include "fmt/format.h"

namespace muster::hosts {
namespace {

// The arguments of one program must fit into 2 MB, and a path has at most 4 kB.
constexpr size_t kMaxArguments = 256;
// The mode that an umask of 077 gives to a file.
constexpr uint32_t kPlainMode = 0600;
// A text that several files share is sent once if that spares something.
constexpr size_t kSharedBytes = 128;

// Returns shell text that prints the content. A shell's word holds anything but NUL.
std::string PrintContent(std::string_view content) {
  std::string words;
  size_t end = 0;
  while ((end = content.find('\0')) != std::string_view::npos) {
    words += " " + Quoted(content.substr(0, end));
    content.remove_prefix(end + 1);
  }
  std::string text;
  if (!words.empty()) text = fmt::format("printf '%s\\000'{} && ", words);
  return text + fmt::format("printf %s {}", Quoted(content));
}

std::string Join(const std::vector<std::string>& paths, size_t begin) {
  std::string words;
  for (size_t i = begin; i < paths.size() && i < begin + kMaxArguments; ++i)
    words += " " + Quoted(paths[i]);
  return words;
}

// `PROGRAM -- PATH...` as often as it takes.
std::string ForAll(std::string_view program, const std::vector<std::string>& paths,
                   std::string_view behind) {
  std::string script;
  for (size_t i = 0; i < paths.size(); i += kMaxArguments)
    script += fmt::format("{} --{}{}\n", program, Join(paths, i), behind);
  return script;
}

}  // namespace

// The shell's own printf writes the files, and one chmod serves all, so that no file costs a
// process.
absl::Status ScriptHost::WriteInPlace(const std::vector<NewFile>& files) {
  std::map<std::string_view, int> uses;
  for (const NewFile& file : files) {
    if (!file.options.in_place || file.options.sync || !CheckPath(file.path).ok())
      return absl::FailedPreconditionError("not all of them may be written in place");
    ++uses[file.content];
  }
  std::string script = "umask 077\n";
  std::map<std::string_view, int> shared;
  std::map<uint32_t, std::vector<std::string>> modes;
  for (const NewFile& file : files) {
    const bool is_shared = uses[file.content] > 1 && file.content.size() > kSharedBytes;
    const auto [known, is_new] = shared.emplace(file.content, static_cast<int>(shared.size()));
    if (is_shared && is_new)
      script += fmt::format("print{}() {{ {}; }}\n", known->second, PrintContent(file.content));
    const std::string print =
        is_shared ? fmt::format("print{}", known->second) : PrintContent(file.content);
    script += fmt::format("{{ {}; }} >{} || exit 1\n", print, Quoted(file.path));
    if (file.options.mode != kPlainMode) modes[file.options.mode].push_back(file.path);
  }
  for (const auto& [mode, paths] : modes)
    script += ForAll(fmt::format("chmod {:o}", mode), paths, " || exit 1");
  const absl::StatusOr<ExecResult> result = RunScript(script + "exit 0", "", 0);
  if (!result.ok()) return result.status();
  if (result->exit_code == 0) return absl::OkStatus();
  return absl::InternalError(result->stderr_data);
}

absl::Status ScriptHost::RemoveManyTrees(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (absl::Status status = CheckRemovable(path); !status.ok()) return status;
  }
  const absl::StatusOr<ExecResult> result =
      RunScript("export LC_ALL=C\n" + ForAll("rm -rf", paths, " || exit $?") + "exit 0", "", 0);
  if (!result.ok()) return result.status();
  if (result->exit_code == 0) return absl::OkStatus();
  const std::string_view path = paths.size() == 1 ? std::string_view(paths.front()) : "several";
  if (const int error = ErrnoFromWords(result->stderr_data); error != 0)
    return FileError(error, "remove", path);
  return absl::UnavailableError(
      fmt::format("cannot remove \"{}\": the host ended with {} and said: {}", path,
                  result->exit_code, result->stderr_data.substr(0, 1000)));
}

absl::Status ScriptHost::RemoveEmptyDirectories(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (absl::Status status = CheckPath(path); !status.ok()) return status;
  }
  return RunScript(ForAll("rmdir", paths, " 2>/dev/null") + "exit 0", "", 0).status();
}

}  // namespace muster::hosts
