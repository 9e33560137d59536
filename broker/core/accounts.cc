#include "broker/core/accounts.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace muster::core {
namespace {

double Seconds(absl::Time time) { return absl::ToDoubleSeconds(time - absl::UnixEpoch()); }

// This stands in for a capacity that nobody knows, so that shares mean something: one core, 4 GiB,
// one GPU.
constexpr Amounts kLeastCapacity = {1000, 4.0 * (uint64_t{1} << 30), 1000};

}  // namespace

Accounts::Accounts(absl::Duration half_life)
    : half_life_(absl::ToDoubleSeconds(half_life)),
      ahead_(std::min(absl::ToDoubleSeconds(kAhead), half_life_ / 10)),
      shares_(std::make_shared<const contract::ProjectShares>()),
      capacity_(kLeastCapacity) {}

void Accounts::Restore(const StoredUses& uses) {
  for (const PutUse& stored : uses) now_ = std::max(now_, Seconds(stored.at));
  base_ = now_;
  for (const PutUse& stored : uses) {
    UserAccount* const account = Open(stored.project, stored.user);
    DecayedUse use{.used = stored.used, .at = Seconds(stored.at)};
    use.Advance(now_, half_life_);
    for (DecayedUse* each : {&account->use, &account->project->use, &account->project->family}) {
      AddTo(use.used, &each->used);
      each->at = now_;
    }
  }
  RescoreAll();
}

void Accounts::SetNow(absl::Time now) {
  const double seconds = Seconds(now);
  if (now_ == 0) {
    // The accounts begin now: runs that were restored have used nothing yet.
    base_ = seconds;
    for (auto& [name, project] : projects_) {
      project->use.at = project->family.at = seconds;
      for (auto& [user, account] : project->users) account->use.at = seconds;
    }
  }
  now_ = std::max(now_, seconds);
}

void Accounts::ShiftClock(absl::Duration by, absl::Time now) {
  const double seconds = absl::ToDoubleSeconds(by);
  now_ = Seconds(now);
  base_ += seconds;
  for (auto& [name, project] : projects_) {
    project->use.at += seconds;
    project->family.at += seconds;
    for (auto& [user, account] : project->users) account->use.at += seconds;
  }
}

const contract::ProjectShare& Accounts::ShareOf(std::string_view project) const {
  const auto found = shares_->projects.find(project);
  return found == shares_->projects.end() ? default_share_ : found->second;
}

void Accounts::SetShares(std::shared_ptr<const contract::ProjectShares> shares) {
  shares_ = std::move(shares);
  for (auto& [name, project] : projects_) {
    project->share = &ShareOf(name);
    project->parent = nullptr;
    project->children.clear();
    project->use.Advance(now_, half_life_);
    project->family = project->use;
    MarkUnshown(project.get());
    for (auto& [user, account] : project->users) MarkUnshown(account.get());
  }
  std::vector<ProjectAccount*> all;
  for (auto& [name, project] : projects_) all.push_back(project.get());
  for (ProjectAccount* project : all) FindParent(project);
  RescoreAll();
}

bool Accounts::SetCapacity(const Amounts& capacity) {
  known_ = capacity;
  Amounts total = kLeastCapacity;
  for (size_t i = 0; i < kResources; ++i) total[i] = std::max({total[i], known_[i], in_use_[i]});
  if (total == capacity_) return false;
  capacity_ = total;
  RescoreAll();
  return are_on();
}

// ---- users

std::optional<UserIndex> Accounts::FindUser(std::string_view name) const {
  const auto found = user_by_name_.find(std::string(name));
  if (found == user_by_name_.end()) return std::nullopt;
  return found->second;
}

uint64_t Accounts::QueuedOf(std::string_view user) const {
  const std::optional<UserIndex> index = FindUser(user);
  return index ? users_[*index].queued : 0;
}

UserIndex Accounts::Intern(const std::string& name) {
  if (const auto found = user_by_name_.find(name); found != user_by_name_.end())
    return found->second;
  UserIndex index = static_cast<UserIndex>(users_.size());
  if (free_.empty()) {
    users_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  users_[index] = {.name = name};
  user_by_name_.emplace(name, index);
  return index;
}

void Accounts::Release(UserIndex user) {
  if (--users_[user].accounts > 0) return;
  user_by_name_.erase(users_[user].name);
  users_[user] = {};
  free_.push_back(user);
}

// ---- accounts

ProjectAccount* Accounts::OpenProject(const std::string& name) {
  std::unique_ptr<ProjectAccount>& project = projects_[name];
  if (project != nullptr) return project.get();
  project = std::make_unique<ProjectAccount>();
  ProjectAccount* const raw = project.get();
  raw->name = name;
  raw->share = &ShareOf(name);
  raw->use.at = raw->family.at = now_;
  FindParent(raw);
  return raw;
}

void Accounts::FindParent(ProjectAccount* project) {
  if (project->share->parent.empty()) return;
  ProjectAccount* const parent = OpenProject(project->share->parent);
  project->parent = parent;
  parent->children.push_back(project);
  project->use.Advance(now_, half_life_);
  parent->family.Advance(now_, half_life_);
  AddTo(project->use.used, &parent->family.used);
  parent->family.Add(project->use.demand);
}

UserAccount* Accounts::Open(const std::string& project, const std::string& user) {
  return Open(project, Intern(user));
}

UserAccount* Accounts::Open(const std::string& project, UserIndex user) {
  ProjectAccount* const owner = OpenProject(project);
  std::unique_ptr<UserAccount>& account = owner->users[user];
  if (account != nullptr) return account.get();
  account = std::make_unique<UserAccount>();
  account->project = owner;
  account->user = user;
  account->use.at = now_;
  ++users_[user].accounts;
  ++accounts_;
  return account.get();
}

const ProjectAccount* Accounts::FindProject(std::string_view name) const {
  const auto found = projects_.find(name);
  return found == projects_.end() ? nullptr : found->second.get();
}

const UserAccount* Accounts::Find(std::string_view project, std::string_view user) const {
  const ProjectAccount* const owner = FindProject(project);
  const std::optional<UserIndex> index = FindUser(user);
  if (owner == nullptr || !index) return nullptr;
  const auto found = owner->users.find(*index);
  return found == owner->users.end() ? nullptr : found->second.get();
}

void Accounts::AddQueued(UserAccount* account, int by) {
  account->jobs.queued += by;
  account->project->jobs.queued += by;
  users_[account->user].queued += by;
  MarkUnshown(account);
  MarkUnshown(account->project);
}

void Accounts::StartRun(UserAccount* account, const Requirements& requirements) {
  AddDemand(account, AmountsOf(requirements), /*begins=*/true);
  const GpuDemand gpus = GpuDemandOf(requirements);
  for (JobTally* jobs : {&account->jobs, &account->project->jobs}) {
    ++jobs->active;
    if (gpus.millis == 0) continue;
    jobs->gpu_millis[""] += gpus.millis;
    if (!gpus.type.empty()) jobs->gpu_millis[gpus.type] += gpus.millis;
  }
}

void Accounts::EndRun(UserAccount* account, const Requirements& requirements) {
  AddDemand(account, AmountsOf(requirements), /*begins=*/false);
  const GpuDemand gpus = GpuDemandOf(requirements);
  for (JobTally* jobs : {&account->jobs, &account->project->jobs}) {
    --jobs->active;
    if (gpus.millis == 0) continue;
    const auto take = [&](const std::string& type) {
      const auto found = jobs->gpu_millis.find(type);
      if ((found->second -= gpus.millis) == 0) jobs->gpu_millis.erase(found);
    };
    take("");
    if (!gpus.type.empty()) take(gpus.type);
  }
}

void Accounts::AddDemand(UserAccount* account, const Amounts& demand, bool begins) {
  ProjectAccount* const project = account->project;
  DecayedUse* const uses[] = {&account->use, &project->use, &project->family,
                              project->parent != nullptr ? &project->parent->family : nullptr};
  for (DecayedUse* use : uses) {
    if (use == nullptr) continue;
    use->Advance(now_, half_life_);
    begins ? use->Add(demand) : use->Remove(demand);
  }
  for (size_t i = 0; i < kResources; ++i) in_use_[i] += begins ? demand[i] : -demand[i];
  account->is_unsaved = true;
  MarkUnshown(account);
  MarkUnshown(project);
  if (!are_on()) return;
  Rescore(account);
  RescoreProject(project);
}

// ---- scores

double Accounts::ScoreOf(const DecayedUse& use, double weight) const {
  if (!are_on()) return kNoScore;
  double share = 0;
  for (size_t i = 0; i < kResources; ++i)
    share = std::max(share, (use.used[i] + use.demand[i] * ahead_) / capacity_[i]);
  if (share <= 0) return kNoScore;
  return std::log2(share / weight) + (use.at - base_) / half_life_;
}

void Accounts::Rescore(UserAccount* account) { account->score = ScoreOf(account->use, 1); }

void Accounts::RescoreProject(ProjectAccount* project) {
  const double weight = project->share->weight;
  // The jobs of a parent itself stand beside its children, with weight 1.
  project->score = ScoreOf(project->use, project->parent != nullptr ? weight : 1);
  if (ProjectAccount* const parent = project->parent) {
    parent->family_score = ScoreOf(parent->family, parent->share->weight);
  } else {
    project->family_score = ScoreOf(project->family, weight);
  }
}

void Accounts::RescoreAll() {
  for (auto& [name, project] : projects_) {
    project->use.Advance(now_, half_life_);
    project->family.Advance(now_, half_life_);
    for (auto& [user, account] : project->users) {
      account->use.Advance(now_, half_life_);
      Rescore(account.get());
    }
  }
  for (auto& [name, project] : projects_) RescoreProject(project.get());
}

// ---- quotas

bool Accounts::IsFull(const ProjectAccount& project) {
  const auto& max = project.share->quota.max_active_runs;
  return max && project.jobs.active >= *max;
}

std::optional<contract::QuotaReached> Accounts::FindReached(const UserAccount& account,
                                                            const GpuDemand& gpus) const {
  const ProjectAccount& project = *account.project;
  return OfProjectOrUser(
      project.name, NameOf(account.user),
      [&] { return core::FindReached(project.share->quota, project.jobs, gpus); },
      [&] { return core::FindReached(project.share->user_quota, account.jobs, gpus); });
}

// ---- once a minute

bool Accounts::IsNegligible(const UserAccount& account) const {
  const bool is_idle =
      account.jobs.queued == 0 && account.jobs.active == 0 && account.queues.empty();
  if (!is_idle) return false;
  // Beyond the bound, an account need not be as small to go.
  const double least = accounts_ > kMaxAccounts ? 1000 * kLeastShare : kLeastShare;
  DecayedUse now = account.use;
  now.Advance(now_, half_life_);
  return DominantShare(now, capacity_, half_life_) < least;
}

void Accounts::Forget(UserAccount* account, Changes* changes) {
  ProjectAccount* const project = account->project;
  const std::string user = NameOf(account->user);
  account->use.Advance(now_, half_life_);
  for (DecayedUse* use : {&project->use, &project->family,
                          project->parent != nullptr ? &project->parent->family : nullptr}) {
    if (use == nullptr) continue;
    use->Advance(now_, half_life_);
    for (size_t i = 0; i < kResources; ++i)
      use->used[i] = std::max(0.0, use->used[i] - account->use.used[i]);
  }
  changes->push_back(RemoveUse{project->name, user});
  gone_.push_back({project->name, user, nullptr});
  if (account->is_unshown) std::erase(unshown_users_, account);
  const UserIndex index = account->user;
  project->users.erase(index);
  --accounts_;
  Release(index);
}

void Accounts::ForgetProjects() {
  for (auto at = projects_.begin(); at != projects_.end();) {
    ProjectAccount& project = *at->second;
    if (!project.users.empty() || !project.children.empty()) {
      ++at;
      continue;
    }
    if (project.parent != nullptr) std::erase(project.parent->children, &project);
    if (project.is_unshown) std::erase(unshown_projects_, &project);
    gone_.push_back({project.name, "", nullptr});
    at = projects_.erase(at);
  }
}

void Accounts::Refresh(Changes* changes) {
  std::vector<UserAccount*> negligible;
  ForEachUserAccount([&](UserAccount* account) {
    if (IsNegligible(*account)) negligible.push_back(account);
  });
  for (UserAccount* account : negligible) Forget(account, changes);
  if (!negligible.empty()) ForgetProjects();
  if (are_on()) {
    SetCapacity(known_);
    RescoreAll();
  }
}

void Accounts::Save(Changes* changes) {
  ForEachUserAccount([&](UserAccount* account) {
    if (!account->is_unsaved) return;
    account->use.Advance(now_, half_life_);
    // A use that goes on changes until its last run has ended.
    account->is_unsaved = account->jobs.active > 0;
    changes->push_back(PutUse{.project = account->project->name,
                              .user = NameOf(account->user),
                              .used = account->use.used,
                              .at = absl::UnixEpoch() + absl::Seconds(now_)});
  });
}

// ---- for readers

void Accounts::MarkUnshown(ProjectAccount* project) {
  if (!std::exchange(project->is_unshown, true)) unshown_projects_.push_back(project);
}

void Accounts::MarkUnshown(UserAccount* account) {
  if (account->project->share->user_quota.is_none()) return;
  if (!std::exchange(account->is_unshown, true)) unshown_users_.push_back(account);
}

std::vector<ShownUse> Accounts::TakeShown() {
  std::vector<ShownUse> shown = std::exchange(gone_, {});
  const auto show = [&](const std::string& project, const std::string& user, Account* account) {
    account->is_unshown = false;
    auto view = std::make_shared<UseView>(UseView{account->jobs, account->use, half_life_});
    shown.push_back({project, user, std::move(view)});
  };
  for (ProjectAccount* project : std::exchange(unshown_projects_, {}))
    show(project->name, "", project);
  for (UserAccount* account : std::exchange(unshown_users_, {}))
    show(account->project->name, NameOf(account->user), account);
  return shown;
}

}  // namespace muster::core
