// Holds projects, their members and their limits, as a value that nobody changes any more. Pure;
// any thread.
#ifndef MUSTER_BROKER_AUTH_PROJECT_TABLE_H_
#define MUSTER_BROKER_AUTH_PROJECT_TABLE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "broker/auth/role.h"
#include "contract/place_limits.h"
#include "contract/project_shares.h"

namespace muster::auth {

// The numbers are in the file of the projects and never change.
enum class MemberKind : uint8_t { kUser = 1, kGroup = 2 };

struct Member {
  MemberKind kind = MemberKind::kUser;
  std::string name;
  Role role = Role::kNone;

  friend bool operator==(const Member&, const Member&) = default;
};

// Limits a project's jobs; an empty list means any.
struct ProjectLimits {
  std::vector<std::string> clusters;
  std::vector<std::string> pools;
  std::vector<std::string> accounts;  // of Slurm
  std::vector<std::string> images;    // beginnings of their names

  friend bool operator==(const ProjectLimits&, const ProjectLimits&) = default;
};

struct Project {
  std::string name;
  std::string description = {};
  ProjectLimits limits = {};
  std::vector<Member> members = {};  // users first, by name
  int64_t created_micros = 0;        // 0: nobody has made or changed it, see ProjectTable
  int64_t archived_micros = 0;       // 0: it takes jobs
  contract::ProjectShare share = {};

  friend bool operator==(const Project&, const Project&) = default;
};

// A role of a caller in a project.
struct Membership {
  std::string project;
  Role role = Role::kNone;
  std::string group = {};  // empty: the user is the member

  friend bool operator==(const Membership&, const Membership&) = default;
};

class ProjectTable {
 public:
  // "default" is there in any case.
  explicit ProjectTable(std::map<std::string, Project, std::less<>> projects);

  // Null: there is none.
  const Project* Find(std::string_view name) const;
  const std::map<std::string, Project, std::less<>>& all() const { return projects_; }
  // True if a job may name any project: there is none but "default".
  bool is_open() const { return projects_.size() == 1; }
  // Returns the roles of such a caller in projects, by project.
  std::vector<Membership> MembershipsOf(std::string_view user,
                                        const std::vector<std::string>& groups) const;
  // Is never null.
  const std::shared_ptr<const contract::PlaceLimits>& places() const { return places_; }
  // Is never null.
  const std::shared_ptr<const contract::ProjectShares>& shares() const { return shares_; }

 private:
  using Index = absl::flat_hash_map<std::string, std::vector<Membership>>;

  const std::map<std::string, Project, std::less<>> projects_;
  Index by_user_;
  Index by_group_;
  std::shared_ptr<const contract::PlaceLimits> places_;
  std::shared_ptr<const contract::ProjectShares> shares_;
};

}  // namespace muster::auth

#endif  // MUSTER_BROKER_AUTH_PROJECT_TABLE_H_
