// Verbs about projects: projects, project.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clients/cli/exit_code.h"
#include "clients/cli/quotas.h"
#include "clients/cli/table.h"
#include "clients/cli/text.h"
#include "clients/cli/verbs.h"
#include "muster/v1/projects_service.pb.h"

namespace muster::cli {
namespace {

using AllowedList = google::protobuf::RepeatedPtrField<std::string>;

// "lab, lab2"; empty: any.
std::string ListText(const AllowedList& list) {
  if (list.empty()) return "any";
  std::vector<std::string> harmless;
  for (const std::string& one : list) harmless.push_back(Harmless(one));
  return fmt::format("{}", fmt::join(harmless, ", "));
}

std::string StateText(const v1::Project& project) {
  return project.has_archive_time() ? "archived" : "open";
}

// "3", or "3 of vision" with a parent.
std::string WeightText(const v1::Project& project) {
  if (project.parent().empty()) return fmt::format("{}", project.weight());
  return fmt::format("{} of {}", project.weight(), Harmless(project.parent()));
}

void PrintForPeople(Session& session, const v1::Project& project) {
  Terminal& terminal = session.terminal;
  const auto line = [&terminal](const std::string& what, const std::string& text) {
    terminal.Out(fmt::format("{:<13}{}\n", what, text));
  };
  line("Project", Harmless(project.name()));
  if (!project.description().empty()) line("Description", Harmless(project.description()));
  line("State", StateText(project));
  line("Clusters", ListText(project.limits().clusters()));
  line("Pools", ListText(project.limits().pools()));
  line("Accounts", ListText(project.limits().accounts()));
  line("Images", ListText(project.limits().images()));
  line("Weight", fmt::format("{}", project.weight()));
  if (!project.parent().empty()) line("Parent", Harmless(project.parent()));
  line("Quota", QuotaText(project.quota()));
  line("User quota", QuotaText(project.user_quota()));
  if (project.has_use()) {
    line("Fair share", PercentText(project.use().fair_share()));
    line("Used", PercentText(project.use().dominant_share()));
    line("In use", UseText(project.use(), project.quota()));
  }
  if (project.members().empty()) return line("Members", "none");
  terminal.Out("\n");
  Table table({{"MEMBER"}, {"KIND"}, {"ROLE"}}, terminal.colours());
  for (const v1::ProjectMember& member : project.members()) {
    table.Add({{Harmless(member.name())},
               {member.kind() == v1::MEMBER_KIND_GROUP ? "group" : "user"},
               {RoleText(member.role())}});
  }
  terminal.Out(table.Take());
}

// Prints a project that was asked for, or as it is after a change.
int PrintProject(Session& session, const v1::Project& project) {
  if (session.ids_only()) {
    session.terminal.Out(Harmless(project.name()) + "\n");
  } else if (!session.for_people()) {
    PrintMessage(session, project);
  } else {
    PrintForPeople(session, project);
  }
  return kOk;
}

// Prints the project in an answer.
template <typename Response>
int PrintAnswer(Session& session, const absl::StatusOr<Response>& answer) {
  if (!answer.ok()) return Fail(session, answer.status());
  return PrintProject(session, answer->project());
}

int ListProjects(Session& session) {
  v1::ListProjectsResponse all;
  v1::ListProjectsRequest request;
  request.set_include_archived(session.call.project.all);
  do {
    auto page = session.client.ListProjects(request);
    if (!page.ok()) return Fail(session, page.status());
    all.mutable_projects()->MergeFrom(page->projects());
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  if (session.ids_only()) {
    for (const v1::Project& project : all.projects())
      session.terminal.Out(Harmless(project.name()) + "\n");
  } else if (session.by_line()) {
    for (const v1::Project& project : all.projects())
      session.terminal.Out(LineOf(session, project));
  } else if (!session.for_people()) {
    PrintMessage(session, all);
  } else {
    Table table({{"NAME"},
                 {"STATE"},
                 {"MEMBERS", 0, true},
                 {"WEIGHT", 0, true},
                 {"FAIR", 0, true},
                 {"USED", 0, true},
                 {"IN USE"},
                 {"CLUSTERS"},
                 {"POOLS"},
                 {"DESCRIPTION"}},
                session.style().look());
    for (const v1::Project& project : all.projects()) {
      table.Add({{Harmless(project.name())},
                 {StateText(project)},
                 {fmt::format("{}", project.members_size())},
                 {WeightText(project)},
                 {PercentText(project.use().fair_share())},
                 {PercentText(project.use().dominant_share())},
                 {UseText(project.use(), project.quota())},
                 {ListText(project.limits().clusters())},
                 {ListText(project.limits().pools())},
                 {Harmless(project.description())}});
    }
    session.terminal.Out(table.Take());
  }
  return kOk;
}

void Put(const std::optional<std::vector<std::string>>& list, AllowedList* out) {
  if (list) out->Assign(list->begin(), list->end());
}

int CreateProject(Session& session) {
  const ProjectFlags& flags = session.call.project;
  v1::CreateProjectRequest request;
  request.set_name(flags.name);
  request.set_description(flags.description.value_or(""));
  Put(flags.clusters, request.mutable_limits()->mutable_clusters());
  Put(flags.pools, request.mutable_limits()->mutable_pools());
  Put(flags.accounts, request.mutable_limits()->mutable_accounts());
  Put(flags.images, request.mutable_limits()->mutable_images());
  request.set_weight(flags.weight.value_or(0));
  request.set_parent(flags.parent.value_or(""));
  if (flags.quota) *request.mutable_quota() = *ParseQuota(*flags.quota);
  if (flags.user_quota) *request.mutable_user_quota() = *ParseQuota(*flags.user_quota);
  return PrintAnswer(session, session.client.CreateProject(request));
}

int ShowProject(Session& session) {
  v1::GetProjectRequest request;
  request.set_name(session.call.project.name);
  return PrintAnswer(session, session.client.GetProject(request));
}

int SetProject(Session& session) {
  const ProjectFlags& flags = session.call.project;
  v1::UpdateProjectRequest request;
  request.set_name(flags.name);
  if (flags.description) request.set_description(*flags.description);
  if (flags.clusters) Put(flags.clusters, request.mutable_clusters()->mutable_names());
  if (flags.pools) Put(flags.pools, request.mutable_pools()->mutable_names());
  if (flags.accounts) Put(flags.accounts, request.mutable_accounts()->mutable_names());
  if (flags.images) Put(flags.images, request.mutable_images()->mutable_names());
  if (flags.weight) request.set_weight(*flags.weight);
  if (flags.parent) request.set_parent(*flags.parent);
  if (flags.quota) *request.mutable_quota() = *ParseQuota(*flags.quota);
  if (flags.user_quota) *request.mutable_user_quota() = *ParseQuota(*flags.user_quota);
  request.set_restore(flags.restore);
  return PrintAnswer(session, session.client.UpdateProject(request));
}

v1::MemberKind KindOfMember(const ProjectFlags& flags) {
  return flags.is_group ? v1::MEMBER_KIND_GROUP : v1::MEMBER_KIND_USER;
}

int AddToProject(Session& session) {
  const ProjectFlags& flags = session.call.project;
  v1::SetMemberRequest request;
  request.set_project(flags.name);
  request.mutable_member()->set_kind(KindOfMember(flags));
  request.mutable_member()->set_name(flags.member);
  request.mutable_member()->set_role(flags.role);
  return PrintAnswer(session, session.client.SetMember(request));
}

int RemoveFromProject(Session& session) {
  const ProjectFlags& flags = session.call.project;
  v1::RemoveMemberRequest request;
  request.set_project(flags.name);
  request.set_kind(KindOfMember(flags));
  request.set_name(flags.member);
  return PrintAnswer(session, session.client.RemoveMember(request));
}

int ArchiveProject(Session& session) {
  v1::ArchiveProjectRequest request;
  request.set_name(session.call.project.name);
  const auto archived = session.client.ArchiveProject(request);
  if (!archived.ok()) return Fail(session, archived.status());
  if (session.ids_only()) return kOk;
  if (!session.for_people()) {
    PrintMessage(session, *archived);
  } else {
    session.terminal.Note(
        archived->deleted() ? "the broker had no job of it: it is deleted"
                            : "it takes no more jobs; the broker keeps it for the sake of its old "
                              "ones");
  }
  return kOk;
}

}  // namespace

int Projects(Session& session) {
  switch (session.call.verb) {
    case Verb::kProjectCreate:
      return CreateProject(session);
    case Verb::kProjectShow:
      return ShowProject(session);
    case Verb::kProjectSet:
      return SetProject(session);
    case Verb::kProjectAdd:
      return AddToProject(session);
    case Verb::kProjectRemove:
      return RemoveFromProject(session);
    case Verb::kProjectArchive:
      return ArchiveProject(session);
    default:
      return ListProjects(session);
  }
}

}  // namespace muster::cli
