#include "agents/users/user_map.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "agents/users/name_map.h"
#include "contract/characters.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::users {
namespace {

// As useradd has it.
constexpr size_t kMaxNameBytes = 32;

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
    const absl::StatusOr<std::optional<MapLine>> line =
        ParseMapLine(ToStd(text), ++number, "MUSTER_USER: LOCAL_USER");
    if (!line.ok()) return line.status();
    if (!line->has_value()) continue;
    if (std::optional<std::string> local = RightPartFor(**line, muster_user))
      return Checked(muster_user, *std::move(local));
  }
  return absl::PermissionDeniedError(ToAbsl(
      fmt::format("Muster's user {} is nobody on this cluster", contract::Quoted(muster_user))));
}

absl::StatusOr<std::string> LocalUserOf(const std::string& file, std::string_view muster_user) {
  if (file.empty()) return Checked(muster_user, std::string(muster_user));
  const absl::StatusOr<std::string> text = ReadMap("run_as_map", file);
  if (!text.ok()) return text.status();
  absl::StatusOr<std::string> local = LocalUserIn(*text, muster_user);
  if (local.ok()) return local;
  return absl::Status(local.status().code(), ToAbsl(fmt::format("run_as_map (\"{}\"): {}", file,
                                                                ToStd(local.status().message()))));
}

}  // namespace muster::users
