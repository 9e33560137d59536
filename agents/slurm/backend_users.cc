// Handles jobs that run as their users: whose a run is, and how Slurm and the host look to that
// user.
#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "agents/slurm/backend.h"
#include "agents/slurm/outcomes.h"
#include "contract/failures.h"
#include "contract/message_of.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

using agents::LaunchOutcome;

// Slurm's words for an account that there is not, or that is not the user's.
constexpr std::string_view kNoAccount = "Invalid account";

}  // namespace

std::string SlurmBackend::RootOf(const std::string& run_key) const {
  if (users_ == nullptr) return config_.run_dir;
  const std::optional<JobUser> user = users_->Of(run_key);
  // There is no file of such a run anywhere.
  return user.has_value() ? users_->RootOf(user->name) : users_->own_directory();
}

Scheduler& SlurmBackend::SchedulerOf(const std::string& run_key) const {
  const std::optional<JobUser> user = users_ == nullptr ? std::nullopt : users_->Of(run_key);
  return user.has_value() ? users_->SideOf(user->name).scheduler : *scheduler_;
}

hosts::Host* SlurmBackend::HostOf(const std::string& run_key) const {
  const std::optional<JobUser> user = users_ == nullptr ? std::nullopt : users_->Of(run_key);
  return user.has_value() ? &users_->SideOf(user->name).host : host_.get();
}

PatientReads& SlurmBackend::ReadsOf(const std::string& run_key) {
  const std::optional<JobUser> user = users_ == nullptr ? std::nullopt : users_->Of(run_key);
  return user.has_value() ? users_->SideOf(user->name).reads : reads_;
}

uploads::HostTrees* SlurmBackend::TreesOf(const std::string& run_key) const {
  const std::optional<JobUser> user = users_ == nullptr ? std::nullopt : users_->Of(run_key);
  return user.has_value() ? users_->SideOf(user->name).trees.get() : trees_.get();
}

// An error for one user of Muster is asked for once, and told to all runs of that user.
std::optional<LaunchOutcome> SlurmBackend::SettleUser(
    const agent::v1::Assignment& assignment,
    std::map<std::string, absl::StatusOr<JobUser>>* found) {
  // A run that may have been submitted stays its user's, whatever the map says now.
  if (users_->Of(assignment.run_key()).has_value()) return std::nullopt;
  const std::string& name = assignment.user();
  if (!found->contains(name)) found->emplace(name, users_->Find(name));
  const absl::StatusOr<JobUser>& user = found->at(name);
  if (absl::IsFailedPrecondition(user.status())) return RefusedFor(JobUsers::WhyNot(user.status()));
  const absl::Status noted = user.ok() ? users_->Note(assignment.run_key(), *user) : user.status();
  if (noted.ok()) return std::nullopt;
  return Deferred(absl::UnavailableError(fmt::format(
      "not submitted, the job's user could not be looked up: {}", ToStd(noted.message()))));
}

std::vector<LaunchOutcome> SlurmBackend::Launch(const agents::Assignments& assignments) {
  if (users_ == nullptr) return LaunchSettled(assignments);
  std::vector<LaunchOutcome> outcomes(assignments.size());
  std::map<std::string, absl::StatusOr<JobUser>> found;
  agents::Assignments settled;
  std::vector<size_t> places;
  for (size_t i = 0; i < assignments.size(); ++i) {
    if (auto outcome = SettleUser(*assignments[i], &found); outcome.has_value()) {
      outcomes[i] = *std::move(outcome);
      continue;
    }
    settled.push_back(assignments[i]);
    places.push_back(i);
  }
  if (settled.empty()) return outcomes;
  std::vector<LaunchOutcome> launched = LaunchSettled(settled);
  for (size_t i = 0; i < places.size(); ++i) outcomes[places[i]] = std::move(launched[i]);
  return outcomes;
}

// An agent that died before it wrote down whose the run is has left it to the journal, which has
// the user of Muster.
void SlurmBackend::RememberUsers(const std::vector<agents::RunHandle>& runs) {
  if (users_ == nullptr) return;
  std::map<std::string, absl::StatusOr<JobUser>> found;
  for (const agents::RunHandle& run : runs) {
    if (users_->Of(run.run_key).has_value() || run.assignment == nullptr) continue;
    {
      const MutexLock lock(mutex_);
      if (forgotten_.contains(run.run_key)) continue;
    }
    const std::string& name = run.assignment->user();
    if (!found.contains(name)) found.emplace(name, users_->Find(name));
    if (const absl::StatusOr<JobUser>& user = found.at(name); user.ok())
      users_->Note(run.run_key, *user).IgnoreError();
  }
}

// A job is seen for certain only as its own user; until that is known there is no word on the run.
agents::ObserveOutcome SlurmBackend::Observe(const std::vector<agents::RunHandle>& runs) {
  if (users_ == nullptr) return ObserveSettled(runs);
  RememberUsers(runs);
  std::vector<agents::RunHandle> settled;
  std::copy_if(
      runs.begin(), runs.end(), std::back_inserter(settled),
      [this](const agents::RunHandle& run) { return users_->Of(run.run_key).has_value(); });
  return ObserveSettled(settled);
}

// Anybody may give a job the name of somebody else's run: Slurm's word on its owner counts.
void SlurmBackend::DropForeign(std::vector<QueueRow>* rows) const {
  if (users_ == nullptr) return;
  const auto is_of = [this](const std::string& run_key, const QueueRow& row) {
    const std::optional<JobUser> user = users_->Of(run_key);
    return user.has_value() && user->uid == row.user_id;
  };
  std::erase_if(*rows, [&](const QueueRow& row) {
    if (!IsArrayName(row.name)) return !is_of(row.name, row);
    const std::vector<std::string> runs = arrays_.RunsOf(row.name);
    return std::none_of(runs.begin(), runs.end(),
                        [&](const std::string& run) { return is_of(run, row); });
  });
}

// The absence of a job in the agent's squeue proves nothing if users see no jobs of others.
absl::Status SlurmBackend::CheckSight(const ClusterSettings& settings) {
  if (users_ == nullptr || !settings.hides_jobs) return absl::OkStatus();
  const absl::StatusOr<std::string> level = commands_.Ask(
      {"sacctmgr", "--noheader", "--parsable2", "show", "user", OwnUser(), "format=AdminLevel"});
  if (level.ok() && (level->starts_with("Operator") || level->starts_with("Administrator")))
    return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "run_as: user needs an agent that sees the users' jobs, and this cluster hides them "
      "(PrivateData): ask Slurm's administrator for sacctmgr modify user {} set "
      "adminlevel=Operator",
      OwnUser()));
}

void SlurmBackend::ExplainStranger(const std::string& run_key, SubmitOutcome* submitted) const {
  const std::optional<JobUser> user = users_ == nullptr ? std::nullopt : users_->Of(run_key);
  if (!user.has_value() || submitted->kind != LaunchOutcome::Kind::kRefused ||
      submitted->words.find(kNoAccount) == std::string::npos)
    return;
  submitted->failure.set_subject(user->name);
  contract::PutSentence(contract::FailureCause::kUserWithoutAccount, &submitted->failure);
}

}  // namespace muster::slurm
