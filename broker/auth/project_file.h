// Keeps projects in a file, SQLite, in which they outlive the broker. One thread at a time.
#ifndef MUSTER_BROKER_AUTH_PROJECT_FILE_H_
#define MUSTER_BROKER_AUTH_PROJECT_FILE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/auth/project_table.h"
#include "daemon/sqlite.h"

namespace muster::auth {

class ProjectFile {
 public:
  // Makes the file if it is missing. FAILED_PRECONDITION: a newer release wrote it. Others as of
  // Database::ToStatus.
  static absl::StatusOr<std::unique_ptr<ProjectFile>> Open(const std::string& path);

  // An OK of each of these means that the change is on disk.
  absl::StatusOr<std::map<std::string, Project, std::less<>>> Load();
  // Writes the project in place of what the file has of it.
  absl::Status Put(const Project& project);
  absl::Status Remove(const std::string& name);

 private:
  explicit ProjectFile(std::unique_ptr<Database> database) : database_(std::move(database)) {}
  absl::Status Prepare();
  absl::Status RemoveRows(const std::string& name);
  absl::Status AddRows(const Project& project);
  absl::Status AddShare(const Project& project);
  absl::Status LoadShares(std::map<std::string, Project, std::less<>>* projects);

  // The statements end before their database.
  const std::unique_ptr<Database> database_;
  Statement load_projects_, load_members_, load_allowed_, load_shares_, load_quotas_;
  Statement add_project_, add_member_, add_allowed_, add_share_, add_quota_;
  Statement remove_project_, remove_members_, remove_allowed_, remove_share_, remove_quotas_;
};

}  // namespace muster::auth

#endif  // MUSTER_BROKER_AUTH_PROJECT_FILE_H_
