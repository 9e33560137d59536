#include "broker/auth/projects.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "broker/auth/project_file.h"
#include "contract/errors.h"

namespace muster::auth {

absl::StatusOr<std::unique_ptr<Projects>> Projects::Open(const std::string& path) {
  auto file = ProjectFile::Open(path);
  if (!file.ok()) return file.status();
  auto loaded = (*file)->Load();
  if (!loaded.ok()) return loaded.status();
  auto projects = std::unique_ptr<Projects>(new Projects(*std::move(file)));
  const MutexLock lock(projects->mutex_);
  projects->table_ = std::make_shared<const ProjectTable>(*std::move(loaded));
  return projects;
}

Projects::Projects(std::unique_ptr<ProjectFile> file) : file_(std::move(file)) {}

Projects::~Projects() = default;

std::shared_ptr<const ProjectTable> Projects::Read() const {
  const MutexLock lock(mutex_);
  return table_;
}

absl::Status Projects::Change(const std::string& name, const Edit& edit) {
  const MutexLock file_lock(file_mutex_);
  const std::shared_ptr<const ProjectTable> before = Read();
  const Project* const now = before->Find(name);
  absl::StatusOr<std::optional<Project>> after =
      edit(now != nullptr ? std::optional<Project>(*now) : std::nullopt);
  if (!after.ok()) return after.status();
  if (now == nullptr && after->has_value() && before->all().size() >= kMaxProjects) {
    return contract::Error(
        absl::StatusCode::kResourceExhausted, "TOO_MANY_PROJECTS",
        fmt::format("there are {} projects, the most there may be; archive some", kMaxProjects));
  }
  std::map<std::string, Project, std::less<>> all = before->all();
  const absl::Status written = after->has_value() ? file_->Put(**after) : file_->Remove(name);
  if (!written.ok()) return written;
  if (after->has_value()) {
    all[name] = **std::move(after);
  } else {
    all.erase(name);
  }
  auto table = std::make_shared<const ProjectTable>(std::move(all));
  const MutexLock lock(mutex_);
  table_ = std::move(table);
  return absl::OkStatus();
}

}  // namespace muster::auth
