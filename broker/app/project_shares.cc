#include "broker/app/project_shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/time/time.h"
#include "broker/core/amounts.h"
#include "broker/core/cluster_view.h"
#include "broker/core/decayed_use.h"
#include "broker/core/use_view.h"
#include "broker/engine/engine.h"
#include "contract/characters.h"
#include "contract/gpu_types.h"

namespace muster::broker {
namespace {

// More GPUs than there are anywhere; sums of it stay below 2^63.
constexpr uint64_t kMaxQuotaMillis = 1'000'000'000'000;

void ToWire(const contract::Quota& quota, v1::Quota* out) {
  if (quota.max_queued_jobs) out->set_max_queued_jobs(*quota.max_queued_jobs);
  if (quota.max_active_runs) out->set_max_active_runs(*quota.max_active_runs);
  for (const auto& [type, most] : quota.max_gpu_millis)
    (*out->mutable_max_gpu_millis())[type] = most;
}

const contract::ProjectShare& ShareOf(const contract::ProjectShares& shares,
                                      const std::string& project) {
  static const contract::ProjectShare defaults;
  const auto found = shares.projects.find(project);
  return found == shares.projects.end() ? defaults : found->second;
}

// Returns the part that weights entitle a project to, beside the projects that have jobs.
double FairShareOf(const std::string& name, std::vector<std::string> with_jobs,
                   const contract::ProjectShares& shares) {
  if (std::find(with_jobs.begin(), with_jobs.end(), name) == with_jobs.end())
    with_jobs.push_back(name);
  const auto root_of = [&](const std::string& project) {
    const std::string& parent = ShareOf(shares, project).parent;
    return parent.empty() ? project : parent;
  };
  // A parent's own jobs stand beside its children, with weight 1.
  const auto weight_within = [&](const std::string& project) -> double {
    return root_of(project) == project ? 1 : ShareOf(shares, project).weight;
  };
  const std::string root = root_of(name);
  std::vector<std::string> roots;
  double siblings = 0;
  for (const std::string& project : with_jobs) {
    roots.push_back(root_of(project));
    if (roots.back() == root) siblings += weight_within(project);
  }
  std::sort(roots.begin(), roots.end());
  roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
  double all = 0;
  for (const std::string& one : roots) all += ShareOf(shares, one).weight;
  return ShareOf(shares, root).weight / all * weight_within(name) / siblings;
}

core::Amounts CapacityOf(const core::ClusterViews& clusters) {
  core::Amounts capacity = {};
  for (const auto& cluster : clusters) {
    if (!cluster->is_connected) continue;
    core::AddTo(core::CapacityOf(cluster->saved->inventory), &capacity);
  }
  return capacity;
}

}  // namespace

uint32_t TakeWeight(uint32_t weight, contract::FieldErrors* errors) {
  if (weight == 0 || weight > contract::kMaxWeight) {
    errors->Add("weight",
                fmt::format("{} is out of range; use 1 to {}", weight, contract::kMaxWeight));
  }
  return weight;
}

contract::Quota TakeQuota(const std::string& field, const v1::Quota& quota,
                          contract::FieldErrors* errors) {
  contract::Quota out;
  if (quota.has_max_queued_jobs()) out.max_queued_jobs = quota.max_queued_jobs();
  if (quota.has_max_active_runs()) out.max_active_runs = quota.max_active_runs();
  const std::string gpus = field + ".max_gpu_millis";
  if (quota.max_gpu_millis().size() > contract::kMaxQuotaTypes) {
    errors->Add(gpus, fmt::format("{} types; the most is {}", quota.max_gpu_millis().size(),
                                  contract::kMaxQuotaTypes));
    return out;
  }
  for (const auto& [type, most] : quota.max_gpu_millis()) {
    const std::string key = fmt::format("{}[{}]", gpus, contract::Quoted(type));
    if (!type.empty() && !contract::IsGpuType(type)) errors->Add(key, contract::NoGpuType(type));
    if (most > kMaxQuotaMillis) {
      errors->Add(key, fmt::format("{} is out of range; use 0 to {} thousandths of GPUs", most,
                                   kMaxQuotaMillis));
    }
    if (!out.max_gpu_millis.emplace(absl::AsciiStrToLower(type), most).second) {
      errors->Add(key, "is there twice: types are the same in upper and lower case; leave one out");
    }
  }
  return out;
}

absl::Status CheckParent(const auth::ProjectTable& projects, const std::string& name,
                         const std::string& parent) {
  if (parent.empty()) return absl::OkStatus();
  const auto bad = [&](std::string_view why) {
    return contract::BadField("parent", fmt::format("{} {}", contract::Quoted(parent), why));
  };
  if (parent == name) return bad("is the project itself; name another one, or none");
  const auth::Project* const found = projects.Find(parent);
  if (found == nullptr) return bad("is no project; muster projects lists those that there are");
  if (!found->share.parent.empty()) {
    return bad(fmt::format("has the parent {} itself; name that one, or one without a parent",
                           contract::Quoted(found->share.parent)));
  }
  for (const auto& [child, project] : projects.all()) {
    if (project.share.parent != name) continue;
    return bad(
        fmt::format("cannot be the parent of {}, which is the parent of {}: there are two "
                    "levels; give {} another parent first",
                    contract::Quoted(name), contract::Quoted(child), contract::Quoted(child)));
  }
  return absl::OkStatus();
}

absl::Status CheckHasNoChildren(const auth::ProjectTable& projects, const std::string& name) {
  for (const auto& [child, project] : projects.all()) {
    if (project.share.parent != name) continue;
    return contract::Error(
        absl::StatusCode::kFailedPrecondition, "PROJECT_HAS_CHILDREN",
        fmt::format("{} is the parent of {}; give that another one first, or none: muster project "
                    "set {} --parent none",
                    contract::Quoted(name), contract::Quoted(child), child),
        {{"project", name}, {"child", child}});
  }
  return absl::OkStatus();
}

void PutShare(const contract::ProjectShare& share, v1::Project* out) {
  out->set_weight(share.weight);
  out->set_parent(share.parent);
  if (!share.quota.is_none()) ToWire(share.quota, out->mutable_quota());
  if (!share.user_quota.is_none()) ToWire(share.user_quota, out->mutable_user_quota());
}

void PutUse(const Services& services, const auth::ProjectTable& projects, v1::Project* out) {
  if (services.engine == nullptr) return;
  const UseBoard& board = services.engine->uses();
  v1::ProjectUse& use = *out->mutable_use();
  use.set_fair_share(FairShareOf(out->name(), board.ProjectsWithJobs(), *projects.shares()));
  const std::shared_ptr<const core::UseView> view = board.Read(out->name());
  if (view == nullptr) return;
  core::DecayedUse now = view->use;
  now.Advance(absl::ToDoubleSeconds(services.now() - absl::UnixEpoch()), view->half_life_s);
  use.set_dominant_share(
      core::DominantShare(now, CapacityOf(*services.engine->clusters()), view->half_life_s));
  use.set_queued_jobs(view->jobs.queued);
  use.set_active_runs(view->jobs.active);
  for (const auto& [type, millis] : view->jobs.gpu_millis)
    (*use.mutable_gpu_millis())[type] = millis;
}

}  // namespace muster::broker
