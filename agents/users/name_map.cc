#include "agents/users/name_map.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "contract/text.h"
#include "daemon/read_file.h"
#include "fmt/format.h"

namespace muster::users {
namespace {

// Some lines for each name of a large site.
constexpr size_t kMaxMapBytes = 4 << 20;

}  // namespace

absl::StatusOr<std::optional<MapLine>> ParseMapLine(std::string_view text, size_t number,
                                                    std::string_view form) {
  const std::string_view line = ToStd(absl::StripAsciiWhitespace(ToAbsl(text)));
  if (line.empty() || line.front() == '#') return std::nullopt;
  // Names may have colons.
  const size_t colon = line.rfind(':');
  MapLine parts;
  parts.left =
      ToStd(absl::StripAsciiWhitespace(ToAbsl(line.substr(0, std::min(colon, line.size())))));
  if (colon != line.npos)
    parts.right = ToStd(absl::StripAsciiWhitespace(ToAbsl(line.substr(colon + 1))));
  if (parts.left.empty() || parts.right.empty() ||
      std::count(parts.left.begin(), parts.left.end(), '*') > 1) {
    return absl::InvalidArgumentError(
        fmt::format("line {} is not of the form \"{}\"", number, form));
  }
  return parts;
}

std::optional<std::string> RightPartFor(const MapLine& line, std::string_view name) {
  const std::string_view pattern = line.left;
  const size_t star = pattern.find('*');
  std::string_view rest;
  if (star == pattern.npos) {
    if (pattern != name) return std::nullopt;
  } else {
    const std::string_view before = pattern.substr(0, star);
    const std::string_view behind = pattern.substr(star + 1);
    if (name.size() < before.size() + behind.size() || !name.starts_with(before) ||
        !name.ends_with(behind))
      return std::nullopt;
    rest = name.substr(before.size(), name.size() - before.size() - behind.size());
  }
  return absl::StrReplaceAll(line.right, {{"\\1", ToAbsl(rest)}});
}

absl::StatusOr<std::string> ReadMap(std::string_view setting, const std::string& file) {
  struct stat info {};
  if (stat(file.c_str(), &info) == 0 && ((info.st_uid != 0 && info.st_uid != geteuid()) ||
                                         (info.st_mode & (S_IWGRP | S_IWOTH)) != 0)) {
    return absl::FailedPreconditionError(fmt::format(
        "{}: \"{}\" must belong to root or to the agent's user, and nobody else may write to it",
        setting, file));
  }
  absl::StatusOr<std::string> text = ReadFile(file, kMaxMapBytes);
  if (text.ok()) return text;
  return absl::FailedPreconditionError(
      ToAbsl(fmt::format("{}: {}", setting, ToStd(text.status().message()))));
}

}  // namespace muster::users
