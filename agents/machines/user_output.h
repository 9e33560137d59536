// Serves as the host that has what runs leave, if they run as their users: logs and records are the
// agent's, results are read as the user whose run wrote them. The results of a run have a path of
// their own here, below the run's directory, because a run may name any directory as the one of its
// results, also another user's.
//
// Any thread may use it.
#ifndef MUSTER_AGENTS_MACHINES_USER_OUTPUT_H_
#define MUSTER_AGENTS_MACHINES_USER_OUTPUT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "agents/hosts/local_host.h"
#include "agents/machines/run_user.h"
#include "sync/mutex.h"

namespace muster::machines {

class UserOutput : public hosts::LocalHost {
 public:
  explicit UserOutput(std::string runs_directory) : runs_directory_(std::move(runs_directory)) {}

  // Returns the path by which the run's results are read here.
  std::string SetResults(const std::string& run_key, const std::string& directory,
                         const RunUser& user);
  void Forget(const std::string& run_key);

  // PERMISSION_DENIED: no word is a path of results.
  absl::StatusOr<hosts::CommandResult> Run(const hosts::Command& command) override;
  // PERMISSION_DENIED: the file is none of the agent's runs, nor of results.
  absl::StatusOr<std::string> ReadFileRange(std::string_view path, uint64_t offset,
                                            size_t max_bytes) override;

 private:
  struct Results {
    std::string directory;
    RunUser user;
  };
  // Returns the real place of a path of results; nothing if it is none.
  struct Place {
    std::string here;   // the part of the path that is not in the real one
    std::string there;  // what is there in its place
    std::string path;   // the real path
    RunUser user;
  };
  std::optional<Place> PlaceOf(std::string_view path) const;

  const std::string runs_directory_;
  mutable Mutex mutex_;
  std::map<std::string, Results> results_ ABSL_GUARDED_BY(mutex_);  // by run key
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_USER_OUTPUT_H_
