#include "agents/hosts/file_error.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <system_error>

#include "fmt/format.h"

namespace muster::hosts {
namespace {

// Linux has 133 of them.
constexpr int kLastErrno = 200;

std::map<std::string, int> ErrnosByWords() {
  std::map<std::string, int> errnos;
  for (int error = 1; error <= kLastErrno; ++error) {
    errnos.emplace(std::generic_category().message(error), error);
  }
  return errnos;
}

bool IsIdentifier(std::string_view name) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
         std::all_of(name.begin(), name.end(), is_word);
}

}  // namespace

absl::Status FileError(int error, std::string_view what, std::string_view path) {
  const std::string message =
      fmt::format("cannot {} \"{}\": {}", what, path, std::generic_category().message(error));
  return {absl::ErrnoToStatusCode(error), message};
}

int ErrnoFromWords(std::string_view text) {
  static const std::map<std::string, int>& errnos = *new auto(ErrnosByWords());
  while (text.ends_with('\n')) text.remove_suffix(1);
  const size_t colon = text.rfind(": ");
  if (colon == std::string_view::npos) return 0;
  const auto found = errnos.find(std::string(text.substr(colon + 2)));
  return found == errnos.end() ? 0 : found->second;
}

absl::Status NotRegularError(std::string_view path) {
  return absl::FailedPreconditionError(fmt::format("\"{}\" is not a regular file", path));
}

absl::Status FileTooLongError(std::string_view path, size_t max_bytes) {
  return absl::ResourceExhaustedError(
      fmt::format("\"{}\" is longer than the limit of {} bytes", path, max_bytes));
}

absl::Status DirectoryTooLongError(std::string_view path) {
  return absl::ResourceExhaustedError(fmt::format(
      "directory \"{}\" has more than {} entries; remove what is old", path, kMaxDirectoryEntries));
}

absl::Status CheckPath(std::string_view path) {
  if (!path.starts_with('/') || path.find('\0') != std::string_view::npos) {
    return absl::InvalidArgumentError(
        fmt::format("path \"{}\" is not absolute; begin it with '/'", std::string(path).c_str()));
  }
  return absl::OkStatus();
}

absl::Status CheckRemovable(std::string_view path) {
  if (absl::Status status = CheckPath(path); !status.ok()) return status;
  if (path.find_first_not_of('/') != std::string_view::npos) return absl::OkStatus();
  return absl::InvalidArgumentError("refused to remove \"/\"");
}

absl::Status CheckRange(uint64_t offset, size_t max_bytes) {
  if (max_bytes > kMaxReadBytes) {
    return absl::InvalidArgumentError(
        fmt::format("a read of {} bytes is more than the limit of {}", max_bytes, kMaxReadBytes));
  }
  if (offset > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) - max_bytes) {
    return absl::InvalidArgumentError(fmt::format("offset {} is beyond any file", offset));
  }
  return absl::OkStatus();
}

absl::Status CheckParts(const std::vector<FilePart>& parts) {
  size_t total = 0;
  for (const FilePart& part : parts) {
    total += part.max_bytes;
    if (absl::Status status = CheckRange(part.offset, total); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckCommand(const Command& command) {
  for (const auto& [name, value] : command.env) {
    if (!IsIdentifier(name)) {
      return absl::InvalidArgumentError(fmt::format(
          "environment variable \"{}\" has a bad name; use letters, digits and '_'", name));
    }
  }
  for (std::string_view name : command.unset_env) {
    const std::string_view stem = name.substr(0, name.size() - (name.ends_with('*') ? 1 : 0));
    if (name != "*" && !IsIdentifier(stem)) {
      return absl::InvalidArgumentError(fmt::format(
          "environment variable \"{}\" has a bad name; use letters, digits and '_'", name));
    }
  }
  if (command.timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("a command's time-out must be more than 0");
  }
  return absl::OkStatus();
}

}  // namespace muster::hosts
