// Keeps all projects of a broker: in memory for look-ups, and in a file.
//
// Any thread may use it. Read never waits for the disk; Change does.
#ifndef MUSTER_BROKER_AUTH_PROJECTS_H_
#define MUSTER_BROKER_AUTH_PROJECTS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/auth/project_table.h"
#include "sync/mutex.h"

namespace muster::auth {

// Projects are read into memory as a whole: some MiB at most.
inline constexpr size_t kMaxProjects = 1000;
inline constexpr size_t kMaxMembers = 1000;       // of a project
inline constexpr size_t kMaxAllowed = 200;        // values in a list of limits
inline constexpr size_t kMaxAllowedBytes = 1024;  // of such a value
inline constexpr size_t kMaxDescriptionBytes = 1024;

class ProjectFile;

class Projects {
 public:
  // Changes a project, given as it is now; nothing if there is none. Returns the project as it is
  // to be; nothing if it is to go. An error: it stays as it is.
  using Edit = std::function<absl::StatusOr<std::optional<Project>>(std::optional<Project>)>;

  // Reads the projects from the file, which is made if it is missing. Errors as of
  // ProjectFile::Open.
  static absl::StatusOr<std::unique_ptr<Projects>> Open(const std::string& path);
  ~Projects();

  // Is never null.
  std::shared_ptr<const ProjectTable> Read() const;

  // Carries the edit out; OK: it is on disk, and Read shows it. RESOURCE_EXHAUSTED,
  // TOO_MANY_PROJECTS. Others: the edit's, and the file's.
  absl::Status Change(const std::string& name, const Edit& edit);

 private:
  explicit Projects(std::unique_ptr<ProjectFile> file);

  // Held for a whole change, so that memory and file have the changes in one order.
  Mutex file_mutex_;
  std::unique_ptr<ProjectFile> file_ ABSL_GUARDED_BY(file_mutex_);

  mutable Mutex mutex_;  // taken after file_mutex_, and never held while the disk works
  std::shared_ptr<const ProjectTable> table_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::auth

#endif  // MUSTER_BROKER_AUTH_PROJECTS_H_
