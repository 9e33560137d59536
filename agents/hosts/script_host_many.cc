// ScriptHost's calls for many files: one script for hundreds of them.
#include <algorithm>
#include <cerrno>
#include <map>

#include "agents/hosts/file_error.h"
#include "agents/hosts/remote_stat.h"
#include "agents/hosts/script_host.h"
#include "agents/hosts/shell_quote.h"
#include "fmt/format.h"

namespace muster::hosts {
namespace {

// One script has at most this many files; a path has at most 4 kB, and the arguments of one `stat`
// must fit into 2 MB.
constexpr size_t kMaxFilesInScript = 256;
// Bytes that stat prints of a file beside its path.
constexpr size_t kStatBytes = 128;
// Bytes of the frame of one part.
constexpr size_t kFrameBytes = 128;

std::string_view Until(std::string_view end, std::string_view* text) {
  const size_t at = std::min(text->find(end), text->size());
  const std::string_view part = text->substr(0, at);
  text->remove_prefix(std::min(at + end.size(), text->size()));
  return part;
}

// Returns whether stat complains of nothing but files that do not exist.
bool IsAllAbsent(std::string_view complaints) {
  while (!complaints.empty()) {
    if (ErrnoFromWords(Until("\n", &complaints)) != ENOENT) return false;
  }
  return true;
}

// Reads one part, then tells how it went on a line that no file can hold, since nobody knows its
// number.
std::string ReadScript(const FilePart& part, std::string_view mark) {
  return fmt::format(
      "p={}\nif [ -L \"$p\" ] || {{ [ -e \"$p\" ] && [ ! -f \"$p\" ]; }}; then r=special\n"
      "elif e=$(dd if=\"$p\" bs=65536 iflag=fullblock,skip_bytes,count_bytes skip={} count={} "
      "status=none 2>&1 >&3); then r=ok\nelse r=$e; fi\nprintf '{}%s\\n' \"$r\"\n",
      Quoted(part.path), part.offset, part.max_bytes, mark);
}

}  // namespace

std::vector<absl::StatusOr<FileInfo>> ScriptHost::StatMany(const std::vector<std::string>& paths) {
  std::vector<absl::StatusOr<FileInfo>> infos(paths.size(), absl::UnavailableError("not asked"));
  for (size_t begin = 0; begin < paths.size(); begin += kMaxFilesInScript) {
    const size_t end = std::min(begin + kMaxFilesInScript, paths.size());
    const absl::Status status = StatChunk(paths, begin, end, &infos);
    if (status.ok()) continue;
    std::fill(infos.begin() + static_cast<ptrdiff_t>(begin), infos.end(), status);
    break;
  }
  return infos;
}

absl::Status ScriptHost::StatChunk(const std::vector<std::string>& paths, size_t begin, size_t end,
                                   std::vector<absl::StatusOr<FileInfo>>* infos) {
  std::string script = fmt::format("export LC_ALL=C\nstat --printf '{} %n\\0' --", kStatFormat);
  size_t max_bytes = 0;
  for (size_t i = begin; i < end; ++i) {
    if (!CheckPath(paths[i]).ok()) continue;
    script += " " + Quoted(paths[i]);
    max_bytes += paths[i].size() + kStatBytes;
  }
  const absl::StatusOr<ExecResult> result = RunScript(script + "\nexit 0", "", max_bytes);
  if (!result.ok()) return result.status();
  std::map<std::string, FileInfo, std::less<>> seen;
  for (std::string_view rest = result->stdout_data; !rest.empty();) {
    std::string_view name = Until(std::string_view("\0", 1), &rest);
    std::string line(Until(" ", &name));
    line += " " + std::string(Until(" ", &name));
    line += " " + std::string(Until(" ", &name));
    const absl::StatusOr<FileInfo> info = ParseStat(line);
    if (!info.ok()) return info.status();
    seen.emplace(name, *info);
  }
  const bool are_all_absent = IsAllAbsent(result->stderr_data);
  for (size_t i = begin; i < end; ++i) {
    if (const auto found = seen.find(paths[i]); found != seen.end()) {
      (*infos)[i] = found->second;
    } else if (absl::Status status = CheckPath(paths[i]); !status.ok()) {
      (*infos)[i] = status;
    } else if (are_all_absent) {
      (*infos)[i] = FileError(ENOENT, "stat", paths[i]);
    } else {
      (*infos)[i] = Stat(paths[i]);
    }
  }
  return absl::OkStatus();
}

std::vector<absl::StatusOr<std::string>> ScriptHost::ReadMany(const std::vector<FilePart>& parts) {
  std::vector<absl::StatusOr<std::string>> contents(parts.size(),
                                                    absl::UnavailableError("not asked"));
  absl::Status status = CheckParts(parts);
  for (size_t begin = 0; begin < parts.size() && status.ok(); begin += kMaxFilesInScript) {
    const size_t end = std::min(begin + kMaxFilesInScript, parts.size());
    status = ReadChunk(parts, begin, end, &contents);
    if (!status.ok())
      std::fill(contents.begin() + static_cast<ptrdiff_t>(begin), contents.end(), status);
  }
  if (!status.ok() && !contents.empty() && absl::IsInvalidArgument(status)) {
    std::fill(contents.begin(), contents.end(), status);
  }
  return contents;
}

absl::Status ScriptHost::ReadChunk(const std::vector<FilePart>& parts, size_t begin, size_t end,
                                   std::vector<absl::StatusOr<std::string>>* contents) {
  const std::string mark = fmt::format("\n{} ", NewNonce());
  const std::string printf_mark = "\\n" + mark.substr(1);
  std::string script = "export LC_ALL=C\nexec 3>&1\n";
  size_t max_bytes = 0;
  for (size_t i = begin; i < end; ++i) {
    if (!CheckPath(parts[i].path).ok()) continue;
    script += ReadScript(parts[i], printf_mark);
    max_bytes += parts[i].max_bytes + parts[i].path.size() + kFrameBytes;
  }
  const absl::StatusOr<ExecResult> result = RunScript(script + "exit 0", "", max_bytes);
  if (!result.ok()) return result.status();
  std::string_view rest = result->stdout_data;
  for (size_t i = begin; i < end; ++i) {
    if (absl::Status status = CheckPath(parts[i].path); !status.ok()) {
      (*contents)[i] = status;
      continue;
    }
    const std::string_view data = Until(mark, &rest);
    const std::string_view verdict = Until("\n", &rest);
    if (verdict == "ok") {
      (*contents)[i] = std::string(data);
    } else if (verdict == "special") {
      (*contents)[i] = NotRegularError(parts[i].path);
    } else if (const int error = ErrnoFromWords(verdict); error != 0) {
      (*contents)[i] = FileError(error, "read", parts[i].path);
    } else {
      (*contents)[i] = absl::UnavailableError(
          fmt::format("cannot read \"{}\": the host said: {}", parts[i].path, verdict));
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::hosts
