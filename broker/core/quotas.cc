// Quotas at a submit, and the counts of projects and users.
#include <map>
#include <utility>

#include "broker/core/amounts.h"
#include "broker/core/impl.h"
#include "broker/core/submit_batch.h"
#include "contract/quota_reached.h"
#include "contract/refusals.h"

namespace muster::core {
namespace {

// Returns a bound that so many more jobs would exceed; nothing if they exceed none.
std::optional<contract::QuotaReached> FindQueueReached(const contract::Quota& quota,
                                                       const Account* account, uint64_t asked) {
  const uint64_t present = account == nullptr ? 0 : account->jobs.queued;
  if (!quota.max_queued_jobs || present + asked <= *quota.max_queued_jobs) return std::nullopt;
  contract::QuotaReached fact;
  fact.what = contract::QuotaReached::What::kQueuedJobs;
  fact.max = *quota.max_queued_jobs;
  fact.present = present;
  fact.asked = asked;
  return fact;
}

}  // namespace

void Core::Impl::On(SetShares& in, Step& step) {
  if (in.shares != nullptr) {
    accounts_.SetShares(std::move(in.shares));
    waiting_.UnparkAll();
    waiting_.RelistAll();
  }
  step.out->effects.push_back(StatusReply{.ticket = in.ticket});
}

void Core::Impl::On(KeepUse& /*in*/, Step& step) { accounts_.Save(&step.out->changes); }

std::optional<contract::Refusal> Core::Impl::CheckQueueQuotas(
    const Submit& in, const std::vector<Candidate>& candidates) const {
  std::map<std::string_view, uint64_t> by_project;
  uint64_t jobs = 0;
  for (const Candidate& candidate : candidates) {
    if (!candidate.is_new()) continue;
    ++jobs;
    ++by_project[candidate.spec->project()];
  }
  if (jobs == 0) return std::nullopt;
  const uint64_t max = options_.max_queued_jobs_per_user;
  if (in.is_bounded && max > 0) {
    const uint64_t queued = accounts_.QueuedOf(in.user);
    if (queued + jobs > max)
      return contract::Refusal{contract::refused::UserQueueFull{in.user, queued, jobs, max}};
  }
  for (const auto& [project, asked] : by_project) {
    const contract::ProjectShare& share = accounts_.ShareOf(project);
    const uint64_t more = asked;
    const Account* const of_project = accounts_.FindProject(project);
    const Account* const of_user = accounts_.Find(project, in.user);
    auto fact = OfProjectOrUser(
        project, in.user, [&] { return FindQueueReached(share.quota, of_project, more); },
        [&] { return FindQueueReached(share.user_quota, of_user, more); });
    if (fact) return contract::Refusal{*std::move(fact)};
  }
  return std::nullopt;
}

std::optional<contract::Refusal> Core::Impl::CheckBeyondQuota(const Requirements& requirements,
                                                              const std::string& user) const {
  if (requirements.gpu_millis == 0) return std::nullopt;
  const contract::ProjectShare& share = accounts_.ShareOf(requirements.project);
  const GpuDemand gpus = GpuDemandOf(requirements);
  auto fact = OfProjectOrUser(
      requirements.project, user, [&] { return FindBeyond(share.quota, gpus); },
      [&] { return FindBeyond(share.user_quota, gpus); });
  if (!fact) return std::nullopt;
  return contract::Refusal{*std::move(fact)};
}

void Core::Impl::CountInAccounts(const Job& job, const Standing& before, const Standing& now) {
  const bool had_run = before.cluster != nullptr, has_run = now.cluster != nullptr;
  if (before.is_queued == now.is_queued && had_run == has_run) return;
  const Group& group = *groups_.at(job.group);
  UserAccount* const account = group.queue->account;
  if (before.is_queued != now.is_queued) accounts_.AddQueued(account, now.is_queued ? 1 : -1);
  if (had_run == has_run) return;
  if (has_run) {
    accounts_.StartRun(account, group.requirements);
  } else {
    accounts_.EndRun(account, group.requirements);
  }
  if (accounts_.are_on()) waiting_.Relist(*account);
  if (has_run) return;
  waiting_.Unpark(account);
  waiting_.Unpark(account->project);
}

void Core::Impl::KeepAccounts(Step& step) {
  accounts_kept_ = step.now;
  accounts_.Refresh(&step.out->changes);
  accounts_.Save(&step.out->changes);
  if (accounts_.are_on()) waiting_.RelistAll();
}

void Core::Impl::RecountCapacity() {
  if (!std::exchange(is_capacity_stale_, false)) return;
  Amounts capacity = {};
  for (const auto& [name, cluster] : clusters_by_name_) {
    if (!cluster->session) continue;
    AddTo(CapacityOf(cluster->saved.inventory), &capacity);
  }
  if (accounts_.SetCapacity(capacity)) waiting_.RelistAll();
}

}  // namespace muster::core
