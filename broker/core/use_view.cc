#include "broker/core/use_view.h"

#include "broker/core/amounts.h"

namespace muster::core {
namespace {

using What = contract::QuotaReached::What;

uint64_t InUse(const JobTally& jobs, const std::string& type) {
  const auto found = jobs.gpu_millis.find(type);
  return found == jobs.gpu_millis.end() ? 0 : found->second;
}

}  // namespace

GpuDemand GpuDemandOf(const Requirements& requirements) {
  if (requirements.gpu_millis == 0) return {};
  return {.type = GpuTypeOf(requirements), .millis = GpuMillisOf(requirements)};
}

std::optional<contract::QuotaReached> FindReached(const contract::Quota& quota,
                                                  const JobTally& jobs, const GpuDemand& gpus) {
  contract::QuotaReached fact;
  if (quota.max_active_runs && jobs.active >= *quota.max_active_runs) {
    fact.what = What::kActiveRuns;
    fact.max = *quota.max_active_runs;
    fact.present = jobs.active;
    fact.asked = 1;
    return fact;
  }
  if (gpus.millis == 0) return std::nullopt;
  for (const auto& [type, max] : quota.max_gpu_millis) {
    if (!type.empty() && type != gpus.type) continue;
    const uint64_t present = InUse(jobs, type);
    if (present + gpus.millis <= max) continue;
    fact.what = What::kGpus;
    fact.gpu_type = type;
    fact.max = max;
    fact.present = present;
    fact.asked = gpus.millis;
    return fact;
  }
  return std::nullopt;
}

std::optional<contract::QuotaReached> FindBeyond(const contract::Quota& quota,
                                                 const GpuDemand& gpus) {
  contract::Quota of_gpus;
  of_gpus.max_gpu_millis = quota.max_gpu_millis;
  return FindReached(of_gpus, JobTally(), gpus);
}

std::optional<contract::QuotaReached> WhyOverQuota(const Requirements& requirements,
                                                   const std::string& user,
                                                   const contract::ProjectShare& share,
                                                   const UseView* of_project,
                                                   const UseView* of_user) {
  const JobTally none;
  const GpuDemand gpus = GpuDemandOf(requirements);
  const auto jobs_of = [&none](const UseView* view) -> const JobTally& {
    return view == nullptr ? none : view->jobs;
  };
  return OfProjectOrUser(
      requirements.project, user,
      [&] { return FindReached(share.quota, jobs_of(of_project), gpus); },
      [&] { return FindReached(share.user_quota, jobs_of(of_user), gpus); });
}

}  // namespace muster::core
