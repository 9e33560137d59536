// Learns the users' rights to partitions: asked rarely, and anew before a job is refused for them.
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "absl/status/status.h"
#include "agents/slurm/backend.h"
#include "agents/slurm/fields.h"

namespace muster::slurm {
namespace {

// Administrators open and close partitions by the month.
constexpr absl::Duration kRightsAge = absl::Minutes(10);
// A refusal rests on what Slurm said so lately; a job array is refused in one go.
constexpr absl::Duration kFreshRights = absl::Seconds(30);
constexpr absl::Duration kIdTimeout = absl::Seconds(20);

bool NamesAccountsOrQos(const std::vector<Partition>& partitions) {
  for (const Partition& partition : partitions) {
    for (const std::string& limit : partition.limits) {
      if (limit.find("Accounts=") != std::string::npos || limit.find("Qos=") != std::string::npos)
        return true;
    }
  }
  return false;
}

bool NamesGroups(const std::vector<Partition>& partitions) {
  for (const Partition& partition : partitions) {
    for (const std::string& limit : partition.limits) {
      if (limit.starts_with("AllowGroups=")) return true;
    }
  }
  return false;
}

}  // namespace

std::string SlurmBackend::OwnUser() const {
  if (!config_.rest_url.empty() && !config_.rest_user.empty()) return config_.rest_user;
  if (!config_.user_on_host.empty()) return config_.user_on_host;
  std::array<char, 16384> buffer;
  passwd entry;
  passwd* found = nullptr;
  getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr ? "" : found->pw_name;
}

absl::StatusOr<Rights> SlurmBackend::AskRights(const ClusterSettings& settings) {
  absl::StatusOr<std::vector<Partition>> partitions = scheduler_->Partitions();
  if (!partitions.ok()) return partitions.status();
  Rights rights;
  rights.partitions = *std::move(partitions);
  rights.lists_subaccounts = ListsSubaccounts(settings);
  const std::string user = OwnUser();
  rights.is_privileged = user == "root" || user == settings.slurm_user;
  if (settings.keeps_accounting && NamesAccountsOrQos(rights.partitions)) {
    absl::StatusOr<std::vector<Association>> mine = scheduler_->Associations(settings, user);
    if (mine.ok()) rights.associations = *std::move(mine);
  }
  if (NamesGroups(rights.partitions)) {
    const absl::StatusOr<hosts::CommandResult> groups =
        host_->Run({.argv = {"id", "-Gn", "--", user}, .timeout = kIdTimeout});
    const std::string_view names =
        groups.ok() && groups->ok() ? std::string_view(groups->stdout_data) : std::string_view();
    for (std::string_view name : Split(names.substr(0, names.find('\n')), ' ')) {
      if (!name.empty()) rights.groups.emplace(name);
    }
  }
  const MutexLock lock(mutex_);
  rights_ = rights;
  rights_settings_ = settings;
  rights_time_ = time_.Now();
  return rights;
}

void SlurmBackend::RefreshRights(const ClusterSettings& settings) {
  {
    const MutexLock lock(mutex_);
    if (time_.Now() - rights_time_ < kRightsAge) return;
  }
  AskRights(settings).IgnoreError();
}

absl::Status SlurmBackend::RefuseForbidden(const v1::JobSpec& spec) {
  ClusterSettings settings;
  {
    const MutexLock lock(mutex_);
    const absl::Status known = CheckRights(spec, rights_);
    if (known.ok() || time_.Now() - rights_time_ < kFreshRights) return known;
    settings = rights_settings_;
  }
  const absl::StatusOr<Rights> rights = AskRights(settings);
  // Slurm is asked to take the job, and says so itself if it does not.
  return rights.ok() ? CheckRights(spec, *rights) : absl::OkStatus();
}

}  // namespace muster::slurm
