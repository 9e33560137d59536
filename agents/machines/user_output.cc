#include "agents/machines/user_output.h"

#include "absl/strings/str_replace.h"
#include "agents/machines/user_host.h"
#include "contract/path_within.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

// In the run's directory, where there is nothing of that name.
constexpr std::string_view kUserResults = "user-results";

absl::Status NobodysFile(std::string_view path) {
  return absl::PermissionDeniedError(
      ToAbsl(fmt::format("\"{}\" is in the results of no run of this cluster", path)));
}

}  // namespace

std::string UserOutput::SetResults(const std::string& run_key, const std::string& directory,
                                   const RunUser& user) {
  const MutexLock lock(mutex_);
  results_.insert_or_assign(run_key, Results{directory, user});
  return fmt::format("{}/{}/{}", runs_directory_, run_key, kUserResults);
}

void UserOutput::Forget(const std::string& run_key) {
  const MutexLock lock(mutex_);
  results_.erase(run_key);
}

std::optional<UserOutput::Place> UserOutput::PlaceOf(std::string_view path) const {
  if (!path.starts_with(runs_directory_ + "/")) return std::nullopt;
  const std::string_view below = path.substr(runs_directory_.size() + 1);
  const size_t slash = below.find('/');
  if (slash == below.npos || !contract::IsWithin(below.substr(slash + 1), kUserResults))
    return std::nullopt;
  const MutexLock lock(mutex_);
  const auto found = results_.find(std::string(below.substr(0, slash)));
  if (found == results_.end()) return std::nullopt;
  const std::string_view rest = below.substr(slash + 1 + kUserResults.size());
  const auto& [directory, user] = found->second;
  return Place{.here = std::string(path.substr(0, path.size() - rest.size())),
               .there = directory,
               .path = directory + std::string(rest),
               .user = user};
}

absl::StatusOr<hosts::CommandResult> UserOutput::Run(const hosts::Command& command) {
  hosts::Command real = command;
  for (std::string& word : real.argv) {
    const std::optional<Place> place = PlaceOf(word);
    if (!place.has_value()) continue;
    word = place->path;
    absl::StatusOr<hosts::CommandResult> result = UserHost(place->user).Run(real);
    if (!result.ok()) return result;
    // The user can write what such a command says, and the agent reads what is named there.
    if (result->stdout_data.find(runs_directory_) != std::string::npos)
      return NobodysFile(runs_directory_);
    result->stdout_data = absl::StrReplaceAll(result->stdout_data, {{place->there, place->here}});
    return result;
  }
  return NobodysFile(command.argv.empty() ? "" : command.argv.back());
}

absl::StatusOr<std::string> UserOutput::ReadFileRange(std::string_view path, uint64_t offset,
                                                      size_t max_bytes) {
  if (const std::optional<Place> place = PlaceOf(path))
    return UserHost(place->user).ReadFileRange(place->path, offset, max_bytes);
  const bool climbs = path.find("/../") != path.npos || path.ends_with("/..");
  if (climbs || !contract::IsWithin(path, runs_directory_)) return NobodysFile(path);
  return LocalHost::ReadFileRange(path, offset, max_bytes);
}

}  // namespace muster::machines
