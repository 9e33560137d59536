// Keeps the accounts of projects and their users: what each has now, and what it has used. Shares
// and quotas go by them.
//
// The order of service compares *scores*. A score is the logarithm of an account's use, related to
// its weight, as it would be at one instant for all: accounts without runs decay alike, and so keep
// their scores. Only accounts with runs get new ones, when a run begins or ends and once a minute.
// Owner: the core's thread.
#ifndef MUSTER_BROKER_CORE_ACCOUNTS_H_
#define MUSTER_BROKER_CORE_ACCOUNTS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "broker/core/amounts.h"
#include "broker/core/changes.h"
#include "broker/core/decayed_use.h"
#include "broker/core/groups.h"
#include "broker/core/use_view.h"
#include "contract/project_shares.h"

namespace muster::core {

struct ProjectAccount;
struct UserQueue;  // waiting_tree.h

// The smaller score is served first. Nothing was used, or nobody has made a project: the smallest.
inline constexpr double kNoScore = -std::numeric_limits<double>::infinity();

// Runs that have just begun count as if they had gone on for this long, or for a tenth of the
// half-life, so that what is free at one moment is divided, and does not all go to the one who is a
// little behind.
inline constexpr absl::Duration kAhead = absl::Hours(1);
// Accounts that are kept, at about 300 B each. Accounts without jobs go first.
inline constexpr size_t kMaxAccounts = 100'000;
// No one would notice such a share: an account without jobs and with less than this is forgotten.
inline constexpr double kLeastShare = 1e-6;

struct Account {
  JobTally jobs;
  DecayedUse use;
  double score = kNoScore;
  bool is_unshown = false;
  // The queues that wait because a quota of this account is reached.
  std::vector<UserQueue*> parked;
};

struct UserAccount : Account {
  ProjectAccount* project = nullptr;
  UserIndex user = 0;
  bool is_unsaved = false;         // its use has changed since it was stored
  std::vector<UserQueue*> queues;  // one in each lane that it has groups in
};

struct ProjectAccount : Account {
  std::string name;
  // Never null; a project that has none gets the default.
  const contract::ProjectShare* share = nullptr;
  ProjectAccount* parent = nullptr;  // the project whose share this one divides; null: none
  std::vector<ProjectAccount*> children;
  // The use of a project without a parent, together with that of its children.
  DecayedUse family;
  double family_score = kNoScore;
  std::map<UserIndex, std::unique_ptr<UserAccount>> users;

  const ProjectAccount& root() const { return parent != nullptr ? *parent : *this; }
};

// The use of a user in a project, as it was stored last.
using StoredUses = std::vector<PutUse>;

class Accounts {
 public:
  explicit Accounts(absl::Duration half_life);
  Accounts(const Accounts&) = delete;
  Accounts& operator=(const Accounts&) = delete;

  // Call this before all else.
  void Restore(const StoredUses& uses);
  // Time passes. It does not go back.
  void SetNow(absl::Time now);
  // Somebody has set the clock, and that much of the time has not really passed.
  void ShiftClock(absl::Duration by, absl::Time now);

  // Says anew what projects there are. All scores may be others afterwards.
  void SetShares(std::shared_ptr<const contract::ProjectShares> shares);
  bool are_on() const { return shares_->are_on; }
  const contract::ProjectShare& ShareOf(std::string_view project) const;
  // Takes over what the connected clusters have. True: scores have changed.
  bool SetCapacity(const Amounts& capacity);

  // ---- users

  // Nothing: nobody of this name has an account.
  std::optional<UserIndex> FindUser(std::string_view name) const;
  const std::string& NameOf(UserIndex user) const { return users_[user].name; }
  // Counts queued jobs of a user, in all projects.
  uint64_t QueuedOf(std::string_view user) const;

  // ---- accounts

  // Makes it if there is none.
  UserAccount* Open(const std::string& project, const std::string& user);
  UserAccount* Open(const std::string& project, UserIndex user);
  // Null: there is none.
  const ProjectAccount* FindProject(std::string_view name) const;
  const UserAccount* Find(std::string_view project, std::string_view user) const;

  void AddQueued(UserAccount* account, int by);
  void StartRun(UserAccount* account, const Requirements& requirements);
  void EndRun(UserAccount* account, const Requirements& requirements);

  // Returns the quota that a further run would exceed, of the project or of the user in it.
  std::optional<contract::QuotaReached> FindReached(const UserAccount& account,
                                                    const GpuDemand& gpus) const;
  // True if the project can have no further run, whatever it needs.
  static bool IsFull(const ProjectAccount& project);

  // ---- once a minute

  // Brings all scores up to now, and forgets accounts of no weight, with a change for each.
  void Refresh(Changes* changes);
  // Adds a change for each account whose use has changed since the last call.
  void Save(Changes* changes);

  // ---- for readers

  // Returns what has changed since the last call; the first call returns all.
  std::vector<ShownUse> TakeShown();

  template <typename F>
  void ForEachProject(F visit) const {
    for (const auto& [name, project] : projects_) visit(*project);
  }
  template <typename F>
  void ForEachUserAccount(F visit) {
    for (auto& [name, project] : projects_) {
      for (auto& [user, account] : project->users) visit(account.get());
    }
  }

 private:
  struct User {
    std::string name;
    size_t accounts = 0;  // 0: the index is free
    uint64_t queued = 0;
  };

  UserIndex Intern(const std::string& name);
  void Release(UserIndex user);
  ProjectAccount* OpenProject(const std::string& name);
  void FindParent(ProjectAccount* project);
  void Rescore(UserAccount* account);
  void RescoreProject(ProjectAccount* project);
  void RescoreAll();
  double ScoreOf(const DecayedUse& use, double weight) const;
  void AddDemand(UserAccount* account, const Amounts& demand, bool begins);
  void MarkUnshown(ProjectAccount* project);
  void MarkUnshown(UserAccount* account);
  bool IsNegligible(const UserAccount& account) const;
  void Forget(UserAccount* account, Changes* changes);
  void ForgetProjects();

  const contract::ProjectShare default_share_;
  const double half_life_;
  const double ahead_;
  std::shared_ptr<const contract::ProjectShares> shares_;  // never null
  double now_ = 0;                                         // seconds since 1970; 0: not known yet
  double base_ = 0;                                        // the instant of the scores
  Amounts capacity_ = {};  // of the clusters; at least what runs have had at the same time
  Amounts known_ = {};     // as SetCapacity was told
  Amounts in_use_ = {};    // by all runs now

  std::vector<User> users_;
  std::vector<UserIndex> free_;
  absl::flat_hash_map<std::string, UserIndex> user_by_name_;
  // By name. The order is that of names, so that walks are the same in every process.
  std::map<std::string, std::unique_ptr<ProjectAccount>, std::less<>> projects_;
  size_t accounts_ = 0;
  std::vector<ProjectAccount*> unshown_projects_;  // those with is_unshown
  std::vector<UserAccount*> unshown_users_;        // likewise
  std::vector<ShownUse> gone_;  // accounts that were forgotten, and have been shown
};

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_ACCOUNTS_H_
