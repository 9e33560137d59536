#include "agents/core/run_files.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/text.h"

namespace muster::agents {

using contract::Quoted;

SplitPath SplitOf(const std::string& path) {
  const size_t end = path.find_last_not_of('/') + 1;
  const size_t slash = path.substr(0, end).rfind('/');
  if (slash == std::string::npos || slash == 0)
    return {"/", path.substr(slash + 1, end - slash - 1)};
  return {path.substr(0, slash), path.substr(slash + 1, end - slash - 1)};
}

absl::StatusOr<std::unique_ptr<RunFiles>> OpenLocalResults(const std::string& directory) {
  const SplitPath split = SplitOf(directory);
  return OpenLocalRunFiles(split.parent, split.name);
}

absl::Status NoWorkingDirectory(std::string_view why) {
  if (why.empty()) why = "the run has no working directory any more, or none yet";
  return contract::Error(absl::StatusCode::kNotFound, "PATH_NOT_FOUND", why);
}

absl::Status PathNotFound(const std::string& path) {
  if (path.empty()) return NoWorkingDirectory();
  return contract::Error(
      absl::StatusCode::kNotFound, "PATH_NOT_FOUND",
      fmt::format("there is no {} in the run's working directory", Quoted(path)));
}

absl::Status PathLeadsOut(const std::string& path) {
  return contract::Error(absl::StatusCode::kPermissionDenied, "PATH_LEADS_OUT",
                         fmt::format("{} leads out of the run's working directory by a link; name "
                                     "what is inside, or copy it there in the job",
                                     Quoted(path)));
}

absl::Status RunFileError(int error, const std::string& path) {
  if (error == ENOENT || error == ENOTDIR) return PathNotFound(path);
  // EXDEV means beyond the directory; ELOOP, by a link of /proc, or round in circles.
  if (error == EXDEV || error == ELOOP) return PathLeadsOut(path);
  if (error == EACCES || error == EPERM) {
    return absl::PermissionDeniedError(
        ToAbsl(fmt::format("the agent's user may not read {}", Quoted(path))));
  }
  return absl::ErrnoToStatus(error, ToAbsl(fmt::format("cannot read {}", Quoted(path))));
}

}  // namespace muster::agents
