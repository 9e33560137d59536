#include "broker/auth/project_file.h"

#include <cstdint>
#include <vector>

namespace muster::auth {
namespace {

constexpr int64_t kProjectsVersion = 1;
constexpr char kProjectsSchema[] = R"(
CREATE TABLE project (
  name TEXT PRIMARY KEY,
  description TEXT NOT NULL,
  created INTEGER NOT NULL,
  archived INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE member (
  project TEXT NOT NULL,
  kind INTEGER NOT NULL,
  name TEXT NOT NULL,
  role INTEGER NOT NULL,
  PRIMARY KEY (project, kind, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE allowed (
  project TEXT NOT NULL,
  what INTEGER NOT NULL,
  place INTEGER NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (project, what, place)
) STRICT, WITHOUT ROWID;
PRAGMA user_version = 1;
)";

constexpr DatabaseRemedies kProjectsRemedies = {
    .full = "free space on its disk and try again",
    .damaged =
        "the file is damaged: put back a backup, or move it away and make all projects anew; jobs "
        "are in another file",
    .disk_error = "look into the kernel's log for errors of its disk",
    .not_writable = "its user must own the directory and the file",
};

// The lists of limits. Their numbers are in the file and never change.
constexpr std::pair<int, std::vector<std::string> ProjectLimits::*> kLimitLists[] = {
    {1, &ProjectLimits::clusters},
    {2, &ProjectLimits::pools},
    {3, &ProjectLimits::accounts},
    {4, &ProjectLimits::images}};

// Calls `take` for each row.
template <typename F>
absl::Status ForEachRow(Statement& select, F take) {
  const ScopedReset reset(&select);
  select.Start();
  while (true) {
    const absl::StatusOr<bool> row = select.Step();
    if (!row.ok()) return row.status();
    if (!*row) return absl::OkStatus();
    take(select);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProjectFile>> ProjectFile::Open(const std::string& path) {
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  auto database = Database::Open(path, kFlags, {.remedies = kProjectsRemedies});
  if (!database.ok()) return database.status();
  // The file is small and seldom written, so that it needs no write-ahead log.
  absl::Status status =
      (*database)->Execute("PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL");
  if (status.ok()) status = (*database)->MakeTables(kProjectsSchema, kProjectsVersion);
  if (!status.ok()) return status;
  auto file = std::unique_ptr<ProjectFile>(new ProjectFile(*std::move(database)));
  if (status = file->Prepare(); !status.ok()) return status;
  return file;
}

absl::Status ProjectFile::Prepare() {
  return database_->PrepareAll({
      {&load_projects_, "SELECT name, description, created, archived FROM project"},
      {&load_members_, "SELECT project, kind, name, role FROM member ORDER BY project, kind, name"},
      {&load_allowed_, "SELECT project, what, value FROM allowed ORDER BY project, what, place"},
      {&add_project_,
       "INSERT INTO project (name, description, created, archived) VALUES (?, ?, ?, ?)"},
      {&add_member_, "INSERT INTO member (project, kind, name, role) VALUES (?, ?, ?, ?)"},
      {&add_allowed_, "INSERT INTO allowed (project, what, place, value) VALUES (?, ?, ?, ?)"},
      {&remove_project_, "DELETE FROM project WHERE name = ?"},
      {&remove_members_, "DELETE FROM member WHERE project = ?"},
      {&remove_allowed_, "DELETE FROM allowed WHERE project = ?"},
  });
}

absl::StatusOr<std::map<std::string, Project, std::less<>>> ProjectFile::Load() {
  std::map<std::string, Project, std::less<>> projects;
  absl::Status status = ForEachRow(load_projects_, [&](const Statement& row) {
    const std::string name(row.Text(0));
    projects[name] = {.name = name,
                      .description = std::string(row.Text(1)),
                      .created_micros = row.Int(2),
                      .archived_micros = row.Int(3)};
  });
  if (!status.ok()) return status;
  status = ForEachRow(load_members_, [&](const Statement& row) {
    const auto project = projects.find(row.Text(0));
    if (project == projects.end()) return;
    project->second.members.push_back({static_cast<MemberKind>(row.Int(1)),
                                       std::string(row.Text(2)), static_cast<Role>(row.Int(3))});
  });
  if (!status.ok()) return status;
  status = ForEachRow(load_allowed_, [&](const Statement& row) {
    const auto project = projects.find(row.Text(0));
    if (project == projects.end()) return;
    for (const auto& [what, list] : kLimitLists) {
      if (what == row.Int(1)) (project->second.limits.*list).emplace_back(row.Text(2));
    }
  });
  if (!status.ok()) return status;
  return projects;
}

absl::Status ProjectFile::Put(const Project& project) {
  return database_->InTransaction([&]() -> absl::Status {
    if (absl::Status removed = RemoveRows(project.name); !removed.ok()) return removed;
    return AddRows(project);
  });
}

absl::Status ProjectFile::Remove(const std::string& name) {
  return database_->InTransaction([&] { return RemoveRows(name); });
}

absl::Status ProjectFile::RemoveRows(const std::string& name) {
  for (Statement* statement : {&remove_project_, &remove_members_, &remove_allowed_}) {
    if (absl::Status status = statement->Start().Bind(name).Run(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ProjectFile::AddRows(const Project& project) {
  add_project_.Start().Bind(project.name).Bind(project.description);
  add_project_.Bind(project.created_micros).Bind(project.archived_micros);
  if (absl::Status status = add_project_.Run(); !status.ok()) return status;
  for (const Member& member : project.members) {
    add_member_.Start().Bind(project.name).Bind(static_cast<int>(member.kind));
    add_member_.Bind(member.name).Bind(static_cast<int>(member.role));
    if (absl::Status status = add_member_.Run(); !status.ok()) return status;
  }
  for (const auto& [what, list] : kLimitLists) {
    int place = 0;
    for (const std::string& value : project.limits.*list) {
      add_allowed_.Start().Bind(project.name).Bind(what).Bind(place++).Bind(value);
      if (absl::Status status = add_allowed_.Run(); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::auth
