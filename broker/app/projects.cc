#include "broker/app/projects.h"

#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "broker/app/access_roles.h"
#include "broker/app/arguments.h"
#include "broker/app/project_limits.h"
#include "broker/app/project_shares.h"
#include "broker/app/rights.h"
#include "broker/auth/projects.h"
#include "broker/auth/tokens.h"
#include "broker/engine/engine.h"
#include "broker/store/store.h"
#include "contract/characters.h"
#include "contract/defaults.h"
#include "contract/errors.h"
#include "contract/validate.h"
#include "daemon/log.h"

namespace muster::broker {
namespace {

using auth::Project;
using google::protobuf::util::TimeUtil;

// The roles that a member may have.
constexpr Role kMemberRoles[] = {Role::kViewer, Role::kSubmitter, Role::kOperator, Role::kAdmin};

v1::MemberKind ToWire(auth::MemberKind kind) {
  return kind == auth::MemberKind::kGroup ? v1::MEMBER_KIND_GROUP : v1::MEMBER_KIND_USER;
}

v1::Project ToWire(const Project& project) {
  v1::Project out;
  out.set_name(project.name);
  out.set_description(project.description);
  const auth::ProjectLimits& limits = project.limits;
  v1::ProjectLimits& shown = *out.mutable_limits();
  shown.mutable_clusters()->Assign(limits.clusters.begin(), limits.clusters.end());
  shown.mutable_pools()->Assign(limits.pools.begin(), limits.pools.end());
  shown.mutable_accounts()->Assign(limits.accounts.begin(), limits.accounts.end());
  shown.mutable_images()->Assign(limits.images.begin(), limits.images.end());
  for (const auth::Member& member : project.members) {
    v1::ProjectMember& one = *out.add_members();
    one.set_kind(ToWire(member.kind));
    one.set_name(member.name);
    one.set_role(RoleToWire(member.role));
  }
  if (project.created_micros != 0)
    *out.mutable_create_time() = TimeUtil::MicrosecondsToTimestamp(project.created_micros);
  if (project.archived_micros != 0)
    *out.mutable_archive_time() = TimeUtil::MicrosecondsToTimestamp(project.archived_micros);
  PutShare(project.share, &out);
  return out;
}

// ---- checks of requests

void CheckProjectName(std::string_view name, contract::FieldErrors* errors) {
  if (contract::ValidateClusterName(name).ok()) return;
  errors->Add("name",
              fmt::format("{} is not 1 to 63 of a-z, 0-9 and '-', with a letter or digit at "
                          "both ends",
                          contract::Quoted(name)));
}

void CheckDescription(std::string_view text, contract::FieldErrors* errors) {
  if (text.size() <= auth::kMaxDescriptionBytes && contract::IsUtf8(text) &&
      !contract::HasControlCharacter(text)) {
    return;
  }
  errors->Add("description", fmt::format("{} is longer than {} bytes or has control characters",
                                         contract::Quoted(text), auth::kMaxDescriptionBytes));
}

using StringList = google::protobuf::RepeatedPtrField<std::string>;

std::vector<std::string> TakeList(const std::string& field, const StringList& names,
                                  contract::FieldErrors* errors) {
  if (names.size() > static_cast<int>(auth::kMaxAllowed)) {
    errors->Add(field, fmt::format("{} values; the most is {}", names.size(), auth::kMaxAllowed));
    return {};
  }
  for (int i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    const bool is_good = !name.empty() && name.size() <= auth::kMaxAllowedBytes &&
                         contract::IsUtf8(name) && !contract::HasControlCharacter(name) &&
                         name.find(' ') == name.npos;
    if (is_good) continue;
    errors->Add(fmt::format("{}[{}]", field, i),
                fmt::format("{} is not 1 to {} bytes without spaces and control characters",
                            contract::Quoted(name), auth::kMaxAllowedBytes));
  }
  return {names.begin(), names.end()};
}

void CheckMemberName(const std::string& field, std::string_view name,
                     contract::FieldErrors* errors) {
  const bool is_good = !name.empty() && name.size() <= auth::kMaxUserBytes &&
                       contract::IsUtf8(name) && name.find(' ') == name.npos &&
                       !contract::HasControlCharacter(name);
  if (is_good) return;
  errors->Add(field, fmt::format("{} is not 1 to {} bytes without spaces and control characters",
                                 contract::Quoted(name), auth::kMaxUserBytes));
}

auth::MemberKind KindOf(const std::string& field, v1::MemberKind kind,
                        contract::FieldErrors* errors) {
  if (!v1::MemberKind_IsValid(kind))
    errors->Add(field, fmt::format("{} is no kind of a member", static_cast<int>(kind)));
  return kind == v1::MEMBER_KIND_GROUP ? auth::MemberKind::kGroup : auth::MemberKind::kUser;
}

absl::StatusOr<auth::Member> ReadMember(const v1::SetMemberRequest& request) {
  contract::FieldErrors errors;
  if (request.project().empty()) errors.Add("project", "is required");
  auth::Member member;
  member.kind = KindOf("member.kind", request.member().kind(), &errors);
  member.name = request.member().name();
  CheckMemberName("member.name", member.name, &errors);
  const std::optional<Role> role = RoleFromWire(request.member().role());
  const bool is_good = role && std::count(std::begin(kMemberRoles), std::end(kMemberRoles), *role);
  if (!is_good) errors.Add("member.role", "is required: viewer, submitter, operator or admin");
  member.role = role.value_or(Role::kNone);
  if (absl::Status status = errors.ToStatus(); !status.ok()) return status;
  return member;
}

// ---- errors

absl::Status NoSuchProject(std::string_view name) {
  return contract::Error(
      absl::StatusCode::kNotFound, "NO_SUCH_PROJECT",
      fmt::format("you have no project {}; muster projects lists those that you may see",
                  contract::Quoted(name)),
      {{"project", std::string(name)}});
}

// ---- changes

// Holds the caller, who may change the project, and the `event` for the log.
struct ProjectChange {
  const Principal& principal;
  const Services& services;
  UseCase use_case;
  std::string_view event;
  const std::string& name;
};

// Checks that the caller may change this project. One that the caller does not see does not exist.
absl::Status CheckMayChange(const ProjectChange& change) {
  const absl::StatusOr<store::Scope> scope = Authorize(change.principal, change.use_case);
  if (!scope.ok()) return scope.status();
  if (scope->Contains(change.name, "")) return absl::OkStatus();
  const absl::StatusOr<store::Scope> seen = Authorize(change.principal, UseCase::kReadProjects);
  const bool is_seen = seen.ok() && seen->Contains(change.name, "");
  return is_seen ? NotAllowed(change.principal) : NoSuchProject(change.name);
}

// Calls `done` when placement goes by the projects as they are now.
void Publish(const Services& services, const auth::ProjectTable& before,
             std::function<void(const absl::Status&)> done) {
  const auto now = services.projects->Read();
  const bool has_shares = *now->shares() != *before.shares();
  if (*now->places() == *before.places()) {
    if (!has_shares) return done(absl::OkStatus());
    return services.engine->SetShares(now->shares(), std::move(done));
  }
  // The core takes them in this order, so that the last answer is that of both.
  if (has_shares) services.engine->SetShares(now->shares(), [](const absl::Status&) {});
  services.engine->SetPlaceLimits(now->places(), std::move(done));
}

// Carries out an edit of a project that there is, and calls `done` when placement goes by it.
void Carry(const ProjectChange& change, const std::function<absl::Status(Project*)>& edit,
           std::function<void(absl::StatusOr<v1::Project>)> done) {
  if (absl::Status may = CheckMayChange(change); !may.ok()) return done(may);
  auth::Projects& projects = *change.services.projects;
  const auto before = projects.Read();
  Project after;
  const absl::Status changed = projects.Change(
      change.name, [&](std::optional<Project> now) -> absl::StatusOr<std::optional<Project>> {
        if (!now) return NoSuchProject(change.name);
        after = *std::move(now);
        if (after.created_micros == 0)
          after.created_micros = absl::ToUnixMicros(change.services.now());
        if (absl::Status status = edit(&after); !status.ok()) return status;
        return after;
      });
  if (!changed.ok()) return done(changed);
  LogEvent(spdlog::level::info, change.event,
           {{"project", change.name}, {"by", change.principal.user}});
  Publish(change.services, *before, [after, done = std::move(done)](const absl::Status& status) {
    if (!status.ok()) return done(status);
    done(ToWire(after));
  });
}

// Wraps a callback that takes a project.
template <typename Response>
auto IntoResponse(ProjectDone<Response> done) {
  return [done = std::move(done)](absl::StatusOr<v1::Project> project) {
    if (!project.ok()) return done(project.status());
    Response response;
    *response.mutable_project() = *std::move(project);
    done(std::move(response));
  };
}

void SortMembers(std::vector<auth::Member>* members) {
  std::sort(members->begin(), members->end(), [](const auth::Member& a, const auth::Member& b) {
    return std::tie(a.kind, a.name) < std::tie(b.kind, b.name);
  });
}

auto FindMember(std::vector<auth::Member>& members, auth::MemberKind kind, std::string_view name) {
  return std::find_if(members.begin(), members.end(), [&](const auth::Member& one) {
    return one.kind == kind && one.name == name;
  });
}

// Deletes an archived project of which the broker has no job. Nobody submits into it any more.
void DeleteIfEmpty(const Services& services, const std::string& name,
                   const ProjectDone<v1::ArchiveProjectResponse>& done) {
  const auto jobs = services.store->CountJobs(store::Scope::Of({name}, {}), {.limit = 1});
  if (!jobs.ok()) return done(jobs.status());
  v1::ArchiveProjectResponse response;
  response.set_deleted(jobs->total == 0);
  if (!response.deleted()) return done(response);
  const auto before = ProjectsOf(services);
  const absl::Status removed = services.projects->Change(
      name, [](const std::optional<Project>&) { return std::optional<Project>(); });
  if (!removed.ok()) return done(removed);
  Publish(services, *before, [response, done](const absl::Status& status) {
    if (!status.ok()) return done(status);
    done(response);
  });
}

}  // namespace

absl::StatusOr<v1::GetProjectResponse> GetProject(const Principal& principal,
                                                  const Services& services,
                                                  const v1::GetProjectRequest& request) {
  const absl::StatusOr<store::Scope> scope = Authorize(principal, UseCase::kReadProjects);
  if (!scope.ok()) return scope.status();
  if (request.name().empty()) return contract::BadField("name", "is required");
  const auto projects = ProjectsOf(services);
  const Project* const project =
      scope->Contains(request.name(), "") ? projects->Find(request.name()) : nullptr;
  if (project == nullptr) return NoSuchProject(request.name());
  v1::GetProjectResponse response;
  *response.mutable_project() = ToWire(*project);
  PutUse(services, *projects, response.mutable_project());
  return response;
}

absl::StatusOr<v1::ListProjectsResponse> ListProjects(const Principal& principal,
                                                      const Services& services,
                                                      const v1::ListProjectsRequest& request) {
  const absl::StatusOr<store::Scope> scope = Authorize(principal, UseCase::kReadProjects);
  if (!scope.ok()) return scope.status();
  const absl::StatusOr<int> page_size = ToPageSize(request.page_size());
  if (!page_size.ok()) return page_size.status();
  const auto projects = ProjectsOf(services);
  v1::ListProjectsResponse response;
  for (auto it = projects->all().upper_bound(request.page_token()); it != projects->all().end();
       ++it) {
    const auto& [name, project] = *it;
    if (!scope->Contains(name, "")) continue;
    if (project.archived_micros != 0 && !request.include_archived()) continue;
    if (response.projects_size() == *page_size) {
      response.set_next_page_token(response.projects().rbegin()->name());
      break;
    }
    *response.add_projects() = ToWire(project);
    PutUse(services, *projects, response.mutable_projects(response.projects_size() - 1));
  }
  return response;
}

void CreateProject(const Principal& principal, const Services& services,
                   const v1::CreateProjectRequest& request,
                   ProjectDone<v1::CreateProjectResponse> done) {
  const absl::StatusOr<store::Scope> scope = Authorize(principal, UseCase::kManageProjects);
  if (!scope.ok()) return done(scope.status());
  contract::FieldErrors errors;
  CheckProjectName(request.name(), &errors);
  CheckDescription(request.description(), &errors);
  Project project{.name = request.name(), .description = request.description()};
  const v1::ProjectLimits& limits = request.limits();
  project.limits = {.clusters = TakeList("limits.clusters", limits.clusters(), &errors),
                    .pools = TakeList("limits.pools", limits.pools(), &errors),
                    .accounts = TakeList("limits.accounts", limits.accounts(), &errors),
                    .images = TakeList("limits.images", limits.images(), &errors)};
  if (request.weight() != 0) project.share.weight = TakeWeight(request.weight(), &errors);
  project.share.parent = request.parent();
  project.share.quota = TakeQuota("quota", request.quota(), &errors);
  project.share.user_quota = TakeQuota("user_quota", request.user_quota(), &errors);
  if (absl::Status status = errors.ToStatus(); !status.ok()) return done(status);
  project.created_micros = absl::ToUnixMicros(services.now());
  const auto before = ProjectsOf(services);
  const absl::Status changed = services.projects->Change(
      project.name,
      [&](const std::optional<Project>& now) -> absl::StatusOr<std::optional<Project>> {
        // Nobody has made "default": it can be made once, as all others.
        if (!now || now->created_micros == 0) {
          absl::Status status =
              CheckParent(*ProjectsOf(services), project.name, project.share.parent);
          if (!status.ok()) return status;
          return project;
        }
        return contract::Error(
            absl::StatusCode::kAlreadyExists, "PROJECT_EXISTS",
            fmt::format("there is a project {}{}; change it with muster project set",
                        contract::Quoted(now->name), now->archived_micros != 0 ? ", archived" : ""),
            {{"project", now->name}});
      });
  if (!changed.ok()) return done(changed);
  LogEvent(spdlog::level::info, "project_created",
           {{"project", project.name}, {"by", principal.user}});
  v1::CreateProjectResponse response;
  *response.mutable_project() = ToWire(project);
  Publish(services, *before, [response, done = std::move(done)](const absl::Status& status) {
    if (!status.ok()) return done(status);
    done(response);
  });
}

void UpdateProject(const Principal& principal, const Services& services,
                   const v1::UpdateProjectRequest& request,
                   ProjectDone<v1::UpdateProjectResponse> done) {
  const ProjectChange change{principal, services, UseCase::kManageProjects, "project_changed",
                             request.name()};
  if (absl::Status may = CheckMayChange(change); !may.ok()) return done(may);
  contract::FieldErrors errors;
  if (request.name().empty()) errors.Add("name", "is required");
  CheckDescription(request.description(), &errors);
  auth::ProjectLimits limits;
  const std::tuple<std::string, const v1::AllowedNames*, std::vector<std::string>*> lists[] = {
      {"clusters", &request.clusters(), &limits.clusters},
      {"pools", &request.pools(), &limits.pools},
      {"accounts", &request.accounts(), &limits.accounts},
      {"images", &request.images(), &limits.images}};
  for (const auto& [field, names, list] : lists)
    *list = TakeList(field + ".names", names->names(), &errors);
  contract::ProjectShare share;
  if (request.has_weight()) share.weight = TakeWeight(request.weight(), &errors);
  share.quota = TakeQuota("quota", request.quota(), &errors);
  share.user_quota = TakeQuota("user_quota", request.user_quota(), &errors);
  if (absl::Status status = errors.ToStatus(); !status.ok()) return done(status);
  Carry(
      change,
      [&](Project* project) -> absl::Status {
        absl::Status status = CheckParent(*ProjectsOf(services), project->name, request.parent());
        if (!status.ok()) return status;
        if (request.has_description()) project->description = request.description();
        if (request.has_clusters()) project->limits.clusters = limits.clusters;
        if (request.has_pools()) project->limits.pools = limits.pools;
        if (request.has_accounts()) project->limits.accounts = limits.accounts;
        if (request.has_images()) project->limits.images = limits.images;
        if (request.has_weight()) project->share.weight = share.weight;
        if (request.has_parent()) project->share.parent = request.parent();
        if (request.has_quota()) project->share.quota = share.quota;
        if (request.has_user_quota()) project->share.user_quota = share.user_quota;
        if (request.restore()) project->archived_micros = 0;
        return absl::OkStatus();
      },
      IntoResponse<v1::UpdateProjectResponse>(std::move(done)));
}

void ArchiveProject(const Principal& principal, const Services& services,
                    const v1::ArchiveProjectRequest& request,
                    ProjectDone<v1::ArchiveProjectResponse> done) {
  const ProjectChange change{principal, services, UseCase::kManageProjects, "project_archived",
                             request.name()};
  if (absl::Status may = CheckMayChange(change); !may.ok()) return done(may);
  if (request.name().empty()) return done(contract::BadField("name", "is required"));
  if (request.name() == contract::kDefaultProject) {
    return done(contract::BadField("name",
                                   "\"default\" is the project of jobs that name none, and "
                                   "cannot be archived; take its members out instead"));
  }
  Carry(
      change,
      [&](Project* project) -> absl::Status {
        absl::Status status = CheckHasNoChildren(*ProjectsOf(services), project->name);
        if (!status.ok()) return status;
        if (project->archived_micros == 0)
          project->archived_micros = absl::ToUnixMicros(services.now());
        return absl::OkStatus();
      },
      [services, name = request.name(), done](const absl::StatusOr<v1::Project>& archived) {
        if (!archived.ok()) return done(archived.status());
        DeleteIfEmpty(services, name, done);
      });
}

void SetMember(const Principal& principal, const Services& services,
               const v1::SetMemberRequest& request, ProjectDone<v1::SetMemberResponse> done) {
  const ProjectChange change{principal, services, UseCase::kManageMembers, "project_member_set",
                             request.project()};
  if (absl::Status may = CheckMayChange(change); !may.ok()) return done(may);
  const absl::StatusOr<auth::Member> member = ReadMember(request);
  if (!member.ok()) return done(member.status());
  Carry(
      change,
      [&](Project* project) -> absl::Status {
        const auto known = FindMember(project->members, member->kind, member->name);
        if (known != project->members.end()) {
          known->role = member->role;
          return absl::OkStatus();
        }
        if (project->members.size() >= auth::kMaxMembers) {
          return contract::Error(
              absl::StatusCode::kResourceExhausted, "TOO_MANY_MEMBERS",
              fmt::format("the project {} has {} members, the most there may be; make a group a "
                          "member in place of its users",
                          contract::Quoted(project->name), auth::kMaxMembers));
        }
        project->members.push_back(*member);
        SortMembers(&project->members);
        return absl::OkStatus();
      },
      IntoResponse<v1::SetMemberResponse>(std::move(done)));
}

void RemoveMember(const Principal& principal, const Services& services,
                  const v1::RemoveMemberRequest& request,
                  ProjectDone<v1::RemoveMemberResponse> done) {
  const ProjectChange change{principal, services, UseCase::kManageMembers, "project_member_removed",
                             request.project()};
  if (absl::Status may = CheckMayChange(change); !may.ok()) return done(may);
  contract::FieldErrors errors;
  if (request.project().empty()) errors.Add("project", "is required");
  if (request.name().empty()) errors.Add("name", "is required");
  const auth::MemberKind kind = KindOf("kind", request.kind(), &errors);
  if (absl::Status status = errors.ToStatus(); !status.ok()) return done(status);
  Carry(
      change,
      [&](Project* project) -> absl::Status {
        const auto known = FindMember(project->members, kind, request.name());
        if (known == project->members.end()) {
          return contract::Error(
              absl::StatusCode::kNotFound, "NO_SUCH_MEMBER",
              fmt::format("{} is no member of the project {}; muster project show lists them",
                          contract::Quoted(request.name()), contract::Quoted(project->name)),
              {{"project", project->name}});
        }
        project->members.erase(known);
        return absl::OkStatus();
      },
      IntoResponse<v1::RemoveMemberResponse>(std::move(done)));
}

}  // namespace muster::broker
