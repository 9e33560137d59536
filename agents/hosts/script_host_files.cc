// The file calls of ScriptHost. Each is a script that uses coreutils with the C locale's words, so
// that what goes wrong has the same class as on this machine.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "agents/hosts/file_error.h"
#include "agents/hosts/remote_stat.h"
#include "agents/hosts/script_host.h"
#include "agents/hosts/shell_quote.h"
#include "fmt/format.h"

namespace muster::hosts {
namespace {

// Scripts end with these instead of a tool's words.
constexpr int kNotRegular = 91;
constexpr int kNotDirectory = 92;
constexpr int kIsDirectory = 93;
// The upload did not arrive whole.
constexpr int kShortInput = 94;

// A listing of kMaxDirectoryEntries names of usual length.
constexpr size_t kMaxListBytes = 128 << 20;
constexpr size_t kMaxStatBytes = 64 << 10;
constexpr size_t kNumberBytes = 32;
constexpr size_t kMaxPathBytes = 4096;  // PATH_MAX

absl::Status ScriptError(const ExecResult& result, std::string_view what, std::string_view path) {
  if (result.exit_code == 0) return absl::OkStatus();
  if (result.exit_code == kNotRegular) return NotRegularError(path);
  if (result.exit_code == kNotDirectory) return FileError(ENOTDIR, what, path);
  if (result.exit_code == kIsDirectory) return FileError(EISDIR, what, path);
  if (const int error = ErrnoFromWords(result.stderr_data); error != 0) {
    return FileError(error, what, path);
  }
  return absl::UnavailableError(fmt::format("cannot {} \"{}\": the host ended with {} and said: {}",
                                            what, path, result.exit_code,
                                            result.stderr_data.substr(0, 1000)));
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

// put NUMBER PATH TEMPORARY SIZE MODE CONV. `dd` tells a full disk, writes nothing in place of
// another file, follows no link that lies there and takes no more of the input than the file's own.
// The size is checked, since a connection that breaks looks like the end of the content. The number
// of the file that fails goes to stdout.
constexpr std::string_view kPut = R"sh(
export LC_ALL=C
umask 077
stop() { c=$?; rm -f -- "$t"; printf %s "$n"; exit "${1:-$c}"; }
put() {
  n=$1 p=$2 t=$3
  dd of="$t" bs=65536 iflag=fullblock,count_bytes count="$4" conv="$6" status=none || stop
  [ "$(stat -c %s -- "$t")" = "$4" ] || stop 94
  chmod "$5" -- "$t" || stop
  if [ -d "$p" ] && [ ! -L "$p" ]; then stop 93; fi
  mv -f -T -- "$t" "$p" || stop
}
)sh";
static_assert(kShortInput == 94 && kIsDirectory == 93);

std::string PutLine(size_t number, const NewFile& file) {
  const std::string temporary = fmt::format("{}.{}.tmp", file.path, NewNonce().substr(0, 16));
  const bool is_synced = file.options.sync;
  std::string line =
      fmt::format("put {} {} {} {} {:o} {}\n", number, Quoted(file.path), Quoted(temporary),
                  file.content.size(), file.options.mode, is_synced ? "excl,fsync" : "excl");
  if (is_synced) line += fmt::format("sync -- {} || stop\n", Quoted(DirectoryOf(file.path)));
  return line;
}

}  // namespace

absl::Status ScriptHost::WriteFile(std::string_view path, std::string_view content,
                                   const WriteOptions& options) {
  return WriteMany({{std::string(path), std::string(content), options}});
}

absl::Status ScriptHost::WriteMany(const std::vector<NewFile>& files) {
  // A file that fails there is written again as below, which tells the file and the reason.
  if (absl::Status status = WriteInPlace(files); status.ok() || absl::IsUnavailable(status))
    return status;
  std::string script(kPut);
  std::string input;
  for (size_t i = 0; i < files.size(); ++i) {
    if (absl::Status status = CheckPath(files[i].path); !status.ok()) return status;
    script += PutLine(i, files[i]);
    input += files[i].content;
  }
  const absl::StatusOr<ExecResult> result = RunScript(script + "exit 0", input, kNumberBytes);
  if (!result.ok()) return result.status();
  if (result->exit_code == 0) return absl::OkStatus();
  const size_t number = std::strtoul(result->stdout_data.c_str(), nullptr, 10);
  const std::string& path = files[std::min(number, files.size() - 1)].path;
  if (result->exit_code == kShortInput) {
    return absl::UnavailableError(fmt::format("\"{}\" did not reach the host whole", path));
  }
  return ScriptError(*result, "write", path);
}

absl::StatusOr<std::string> ScriptHost::ReadFileRange(std::string_view path, uint64_t offset,
                                                      size_t max_bytes) {
  if (absl::Status status = CheckPath(path); !status.ok()) return status;
  if (absl::Status status = CheckRange(offset, max_bytes); !status.ok()) return status;
  absl::StatusOr<ExecResult> result = RunScript(
      fmt::format("export LC_ALL=C\np={}\n"
                  "if [ -e \"$p\" ] && [ ! -f \"$p\" ]; then exit {}; fi\n"
                  "exec dd if=\"$p\" bs=65536 iflag=fullblock,skip_bytes,count_bytes skip={} "
                  "count={} status=none",
                  Quoted(path), kNotRegular, offset, max_bytes),
      "", max_bytes);
  if (!result.ok()) return result.status();
  if (absl::Status status = ScriptError(*result, "read", path); !status.ok()) return status;
  return std::move(result->stdout_data);
}

absl::StatusOr<std::string> ScriptHost::ReadFile(std::string_view path, size_t max_bytes) {
  if (absl::Status status = CheckPath(path); !status.ok()) return status;
  if (absl::Status status = CheckRange(0, max_bytes); !status.ok()) return status;
  // One more byte tells that it is longer; a read of the most that may be asked for goes in two.
  absl::StatusOr<std::string> data = ReadFileRange(path, 0, std::min(max_bytes + 1, kMaxReadBytes));
  if (!data.ok() || data->size() < max_bytes) return data;
  if (data->size() > max_bytes) return FileTooLongError(path, max_bytes);
  if (max_bytes < kMaxReadBytes) return data;
  const absl::StatusOr<std::string> more = ReadFileRange(path, max_bytes, 1);
  if (!more.ok()) return more.status();
  if (!more->empty()) return FileTooLongError(path, max_bytes);
  return data;
}

// One mkdir makes all whose parents are there; what that left out is made step by step.
absl::Status ScriptHost::MakeManyDirectories(const std::vector<std::string>& paths, uint32_t mode) {
  if (paths.empty()) return absl::OkStatus();
  std::string all;
  std::string steps;
  for (const std::string& path : paths) {
    if (absl::Status status = CheckPath(path); !status.ok()) return status;
    all += " " + Quoted(path);
    size_t end = 0;
    do {
      end = path.find('/', end + 1);
      steps += fmt::format("make {}\n", Quoted(path.substr(0, end)));
    } while (end != std::string::npos);
  }
  const std::string script = fmt::format(
      "export LC_ALL=C\nmkdir -m {:o} --{} 2>/dev/null && exit 0\n"
      "make() {{\n  [ ! -d \"$1\" ] || return 0\n  mkdir -m {:o} -- \"$1\" && return 0\n  c=$?\n"
      "  [ ! -d \"$1\" ] || return 0\n  printf %s \"$1\"\n  [ ! -e \"$1\" ] || exit {}\n"
      "  exit $c\n}}\n{}exit 0",
      mode, all, mode, kNotDirectory, steps);
  const absl::StatusOr<ExecResult> result = RunScript(script, "", kMaxPathBytes);
  if (!result.ok()) return result.status();
  return ScriptError(*result, "make the directory", result->stdout_data);
}

absl::StatusOr<FileInfo> ScriptHost::Stat(std::string_view path) {
  if (absl::Status status = CheckPath(path); !status.ok()) return status;
  const absl::StatusOr<ExecResult> result =
      RunScript(fmt::format("export LC_ALL=C\nexec stat -c '{}' -- {}", kStatFormat, Quoted(path)),
                "", kMaxStatBytes);
  if (!result.ok()) return result.status();
  if (absl::Status status = ScriptError(*result, "stat", path); !status.ok()) return status;
  return ParseStat(result->stdout_data);
}

absl::StatusOr<std::vector<std::string>> ScriptHost::ListDirectory(std::string_view path) {
  if (absl::Status status = CheckPath(path); !status.ok()) return status;
  const absl::StatusOr<ExecResult> result =
      RunScript(fmt::format("export LC_ALL=C\np={}\n"
                            "if [ -e \"$p\" ] && [ ! -d \"$p\" ]; then exit {}; fi\n"
                            "exec find -H \"$p\" -mindepth 1 -maxdepth 1 -printf '%f\\0'",
                            Quoted(path), kNotDirectory),
                "", kMaxListBytes);
  if (!result.ok()) return result.status();
  if (absl::Status status = ScriptError(*result, "list", path); !status.ok()) return status;
  std::vector<std::string> names;
  std::string_view rest = result->stdout_data;
  while (!rest.empty()) {
    if (names.size() == kMaxDirectoryEntries) return DirectoryTooLongError(path);
    const size_t end = std::min(rest.find('\0'), rest.size());
    names.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status ScriptHost::RemoveTree(std::string_view path) {
  return RemoveManyTrees({std::string(path)});
}

}  // namespace muster::hosts
