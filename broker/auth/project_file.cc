#include "broker/auth/project_file.h"

#include <cstdint>
#include <vector>

namespace muster::auth {
namespace {

constexpr int64_t kProjectsVersion = 2;
constexpr std::string_view kVersion1 = R"(
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
)";
// Adds shares and quotas. Projects with the default ones have no rows here.
constexpr std::string_view kVersion2 = R"(
CREATE TABLE share (
  project TEXT PRIMARY KEY,
  weight INTEGER NOT NULL,
  parent TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE quota (
  project TEXT NOT NULL,
  whose INTEGER NOT NULL,
  what INTEGER NOT NULL,
  gpu_type TEXT NOT NULL,
  most INTEGER NOT NULL,
  PRIMARY KEY (project, whose, what, gpu_type)
) STRICT, WITHOUT ROWID;
PRAGMA user_version = 2;
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

// The bounds of quotas. These numbers are in the file, too, and never change.
constexpr std::pair<int, contract::Quota contract::ProjectShare::*> kQuotas[] = {
    {1, &contract::ProjectShare::quota}, {2, &contract::ProjectShare::user_quota}};
constexpr int kQueuedJobs = 1, kActiveRuns = 2, kGpuMillis = 3;

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

absl::Status BringUpToDate(const Database& database) {
  const absl::StatusOr<int64_t> version = database.QueryInt("PRAGMA user_version");
  if (!version.ok()) return version.status();
  if (*version == 1)
    return database.InTransaction([&] { return database.Execute(std::string(kVersion2)); });
  return database.MakeTables(std::string(kVersion1) + std::string(kVersion2), kProjectsVersion);
}

void TakeBound(int what, std::string_view gpu_type, int64_t most, contract::Quota* quota) {
  if (what == kQueuedJobs) quota->max_queued_jobs = static_cast<uint32_t>(most);
  if (what == kActiveRuns) quota->max_active_runs = static_cast<uint32_t>(most);
  if (what == kGpuMillis) quota->max_gpu_millis[std::string(gpu_type)] = most;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProjectFile>> ProjectFile::Open(const std::string& path) {
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  auto database = Database::Open(path, kFlags, {.remedies = kProjectsRemedies});
  if (!database.ok()) return database.status();
  // The file is small and seldom written, so that it needs no write-ahead log.
  absl::Status status =
      (*database)->Execute("PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL");
  if (status.ok()) status = BringUpToDate(**database);
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
      {&load_shares_, "SELECT project, weight, parent FROM share"},
      {&load_quotas_, "SELECT project, whose, what, gpu_type, most FROM quota"},
      {&add_share_, "INSERT INTO share (project, weight, parent) VALUES (?, ?, ?)"},
      {&add_quota_,
       "INSERT INTO quota (project, whose, what, gpu_type, most) VALUES (?, ?, ?, ?, ?)"},
      {&remove_share_, "DELETE FROM share WHERE project = ?"},
      {&remove_quotas_, "DELETE FROM quota WHERE project = ?"},
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
  if (status.ok()) status = LoadShares(&projects);
  if (!status.ok()) return status;
  return projects;
}

absl::Status ProjectFile::LoadShares(std::map<std::string, Project, std::less<>>* projects) {
  const absl::Status status = ForEachRow(load_shares_, [&](const Statement& row) {
    const auto project = projects->find(row.Text(0));
    if (project == projects->end()) return;
    project->second.share.weight = static_cast<uint32_t>(row.Int(1));
    project->second.share.parent = row.Text(2);
  });
  if (!status.ok()) return status;
  return ForEachRow(load_quotas_, [&](const Statement& row) {
    const auto project = projects->find(row.Text(0));
    if (project == projects->end()) return;
    for (const auto& [whose, quota] : kQuotas) {
      if (whose != row.Int(1)) continue;
      TakeBound(static_cast<int>(row.Int(2)), row.Text(3), row.Int(4),
                &(project->second.share.*quota));
    }
  });
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
  for (Statement* statement :
       {&remove_project_, &remove_members_, &remove_allowed_, &remove_share_, &remove_quotas_}) {
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
  return AddShare(project);
}

absl::Status ProjectFile::AddShare(const Project& project) {
  const contract::ProjectShare& share = project.share;
  if (share.weight != contract::kDefaultWeight || !share.parent.empty()) {
    add_share_.Start().Bind(project.name).Bind(share.weight).Bind(share.parent);
    if (absl::Status status = add_share_.Run(); !status.ok()) return status;
  }
  absl::Status status;
  const auto add = [&](int whose, int what, const std::string& type, uint64_t most) {
    if (!status.ok()) return;
    add_quota_.Start().Bind(project.name).Bind(whose).Bind(what).Bind(type).Bind(most);
    status = add_quota_.Run();
  };
  for (const auto& [whose, list] : kQuotas) {
    const contract::Quota& quota = share.*list;
    if (quota.max_queued_jobs) add(whose, kQueuedJobs, "", *quota.max_queued_jobs);
    if (quota.max_active_runs) add(whose, kActiveRuns, "", *quota.max_active_runs);
    for (const auto& [type, most] : quota.max_gpu_millis) add(whose, kGpuMillis, type, most);
  }
  return status;
}

}  // namespace muster::auth
