// The jobs and the use of a project, or of a user in it, as readers see them. The core says which
// have changed; any thread may read a view.
#ifndef MUSTER_BROKER_CORE_USE_VIEW_H_
#define MUSTER_BROKER_CORE_USE_VIEW_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "broker/core/decayed_use.h"
#include "broker/core/requirements.h"
#include "contract/project_shares.h"
#include "contract/quota_reached.h"

namespace muster::core {

// The jobs of a project, or of a user in it.
struct JobTally {
  uint64_t queued = 0;  // not ended, and on no cluster
  uint64_t active = 0;  // runs that have not ended
  // The thousandths of GPUs of these runs, by type in lower case; "" stands for all together.
  std::map<std::string, uint64_t, std::less<>> gpu_millis;

  friend bool operator==(const JobTally&, const JobTally&) = default;
};

struct UseView {
  JobTally jobs;
  DecayedUse use;          // `at` in seconds since 1970
  double half_life_s = 1;  // of the use
};

// A project, or a user in one, that differs from what was shown before. Users are shown where their
// project has a quota for each of them.
struct ShownUse {
  std::string project;
  std::string user;                     // empty: the project as a whole
  std::shared_ptr<const UseView> view;  // null: it has nothing any more
};

// The demand of a job's next run on quotas of GPUs.
struct GpuDemand {
  std::string type;  // in lower case; empty: any
  uint64_t millis = 0;

  friend auto operator<=>(const GpuDemand&, const GpuDemand&) = default;
};
GpuDemand GpuDemandOf(const Requirements& requirements);

// Returns what the quota of the project says, or else that of its user, and whose it is.
template <typename OfProject, typename OfUser>
std::optional<contract::QuotaReached> OfProjectOrUser(std::string_view project,
                                                      std::string_view user, OfProject of_project,
                                                      OfUser of_user) {
  std::optional<contract::QuotaReached> fact = of_project();
  if (!fact) {
    fact = of_user();
    if (fact) fact->user = user;
  }
  if (fact) fact->project = project;
  return fact;
}

// Returns the first bound that one more run would exceed, without project and user.
std::optional<contract::QuotaReached> FindReached(const contract::Quota& quota,
                                                  const JobTally& jobs, const GpuDemand& gpus);
// Returns a bound on GPUs that one run exceeds by itself.
std::optional<contract::QuotaReached> FindBeyond(const contract::Quota& quota,
                                                 const GpuDemand& gpus);

// Returns the quota for which a job waits that is QUEUED; nothing if none. `project` and `user` are
// what they have now; null if nothing.
std::optional<contract::QuotaReached> WhyOverQuota(const Requirements& requirements,
                                                   const std::string& user,
                                                   const contract::ProjectShare& share,
                                                   const UseView* of_project,
                                                   const UseView* of_user);

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_USE_VIEW_H_
