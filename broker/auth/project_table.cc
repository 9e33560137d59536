#include "broker/auth/project_table.h"

#include <algorithm>
#include <utility>

#include "contract/defaults.h"

namespace muster::auth {
namespace {

using ByName = std::map<std::string, Project, std::less<>>;

ByName WithDefault(ByName projects) {
  const std::string name(contract::kDefaultProject);
  projects.try_emplace(name, Project{.name = name});
  return projects;
}

}  // namespace

ProjectTable::ProjectTable(ByName projects) : projects_(WithDefault(std::move(projects))) {
  auto places = std::make_shared<contract::PlaceLimits>();
  auto shares = std::make_shared<contract::ProjectShares>();
  shares->are_on = !is_open();
  for (const auto& [name, project] : projects_) {
    for (const Member& member : project.members) {
      const bool is_group = member.kind == MemberKind::kGroup;
      Index& index = is_group ? by_group_ : by_user_;
      index[member.name].push_back({name, member.role, is_group ? member.name : ""});
    }
    const ProjectLimits& limits = project.limits;
    contract::PlaceLimit place{.clusters = limits.clusters,
                               .pools = limits.pools,
                               .needs_account = !limits.accounts.empty()};
    if (place != contract::PlaceLimit()) places->emplace(name, std::move(place));
    if (project.share != contract::ProjectShare()) shares->projects.emplace(name, project.share);
  }
  places_ = std::move(places);
  shares_ = std::move(shares);
}

const Project* ProjectTable::Find(std::string_view name) const {
  const auto found = projects_.find(name);
  return found == projects_.end() ? nullptr : &found->second;
}

std::vector<Membership> ProjectTable::MembershipsOf(std::string_view user,
                                                    const std::vector<std::string>& groups) const {
  std::vector<Membership> memberships;
  const auto add = [&memberships](const Index& index, std::string_view name) {
    const auto found = index.find(std::string(name));
    if (found == index.end()) return;
    memberships.insert(memberships.end(), found->second.begin(), found->second.end());
  };
  add(by_user_, user);
  for (const std::string& group : groups) add(by_group_, group);
  std::stable_sort(memberships.begin(), memberships.end(),
                   [](const Membership& a, const Membership& b) { return a.project < b.project; });
  return memberships;
}

}  // namespace muster::auth
