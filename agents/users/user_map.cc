#include "agents/users/user_map.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "contract/characters.h"
#include "contract/text.h"
#include "daemon/read_file.h"
#include "fmt/format.h"

namespace muster::users {
namespace {

// Some lines for each user of a large site.
constexpr size_t kMaxMapBytes = 4 << 20;
// As useradd has it.
constexpr size_t kMaxNameBytes = 32;

// "\1" of the right part; nothing: the left part does not fit.
std::optional<std::string_view> Fit(std::string_view pattern, std::string_view user) {
  const size_t star = pattern.find('*');
  if (star == pattern.npos)
    return pattern == user ? std::optional<std::string_view>("") : std::nullopt;
  const std::string_view before = pattern.substr(0, star);
  const std::string_view behind = pattern.substr(star + 1);
  if (user.size() < before.size() + behind.size() || !user.starts_with(before) ||
      !user.ends_with(behind))
    return std::nullopt;
  return user.substr(before.size(), user.size() - before.size() - behind.size());
}

// A number would be taken for a user id by some programs, and an option begins with '-'.
bool IsName(std::string_view name) {
  const auto is_good = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
  };
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::all_of(name.begin(), name.end(), is_good) && name.front() != '-' &&
         name.front() != '.' &&
         !std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

absl::StatusOr<std::string> Checked(std::string_view muster_user, std::string local) {
  if (IsName(local) && local != "root") return local;
  return absl::PermissionDeniedError(
      ToAbsl(fmt::format("Muster's user {} is {} here, as whom nothing may run",
                         contract::Quoted(muster_user), contract::Quoted(local))));
}

}  // namespace

absl::StatusOr<std::string> LocalUserIn(std::string_view map, std::string_view muster_user) {
  size_t number = 0;
  for (const absl::string_view text : absl::StrSplit(ToAbsl(map), '\n')) {
    ++number;
    const absl::string_view line = absl::StripAsciiWhitespace(text);
    if (line.empty() || line.front() == '#') continue;
    // The names of Muster's users may have colons.
    const size_t colon = line.rfind(':');
    const std::string_view left =
        ToStd(absl::StripAsciiWhitespace(line.substr(0, std::min(colon, line.size()))));
    const std::string_view right =
        colon == line.npos ? "" : ToStd(absl::StripAsciiWhitespace(line.substr(colon + 1)));
    if (left.empty() || right.empty() || std::count(left.begin(), left.end(), '*') > 1) {
      return absl::InvalidArgumentError(
          fmt::format("line {} is not of the form \"MUSTER_USER: LOCAL_USER\"", number));
    }
    const std::optional<std::string_view> star = Fit(left, muster_user);
    if (!star.has_value()) continue;
    return Checked(muster_user, absl::StrReplaceAll(ToAbsl(right), {{"\\1", ToAbsl(*star)}}));
  }
  return absl::PermissionDeniedError(ToAbsl(
      fmt::format("Muster's user {} is nobody on this cluster", contract::Quoted(muster_user))));
}

absl::StatusOr<std::string> LocalUserOf(const std::string& file, std::string_view muster_user) {
  if (file.empty()) return Checked(muster_user, std::string(muster_user));
  struct stat info {};
  if (stat(file.c_str(), &info) == 0 && ((info.st_uid != 0 && info.st_uid != geteuid()) ||
                                         (info.st_mode & (S_IWGRP | S_IWOTH)) != 0)) {
    return absl::FailedPreconditionError(fmt::format(
        "run_as_map: \"{}\" must belong to root or to the agent's user, and nobody else may write "
        "to it",
        file));
  }
  const absl::StatusOr<std::string> text = ReadFile(file, kMaxMapBytes);
  if (!text.ok()) {
    return absl::FailedPreconditionError(
        ToAbsl(fmt::format("run_as_map: {}", ToStd(text.status().message()))));
  }
  absl::StatusOr<std::string> local = LocalUserIn(*text, muster_user);
  if (local.ok()) return local;
  return absl::Status(local.status().code(), ToAbsl(fmt::format("run_as_map (\"{}\"): {}", file,
                                                                ToStd(local.status().message()))));
}

}  // namespace muster::users
