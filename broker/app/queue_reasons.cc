#include "broker/app/queue_reasons.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/time/clock.h"
#include "broker/app/project_limits.h"
#include "broker/core/cluster_view.h"
#include "broker/core/requirements.h"
#include "broker/engine/engine.h"
#include "broker/store/store.h"
#include "contract/place_limits.h"

namespace muster::broker {
namespace {

bool WaitsForCluster(const v1::Job& job) {
  return job.state() == v1::JOB_STATE_QUEUED && !job.held() && !job.has_retry_time();
}

// Keeps one reason for all jobs that are alike.
class Reasons {
 public:
  Reasons(const Services& services, AnswerRoom* room)
      : clusters_(services.engine->clusters()),
        limits_(ProjectsOf(services)->places()),
        room_(room) {}

  void AddTo(v1::Job* job, const v1::JobSpec& spec) {
    core::Requirements requirements = core::RequirementsOf(spec);
    auto known = reasons_.find(requirements);
    if (known == reasons_.end()) {
      if (reasons_.size() == kMaxExplained) return;
      v1::StateReason reason = core::WhyQueued(requirements, *clusters_, *limits_, absl::Now());
      known = reasons_.emplace(std::move(requirements), std::move(reason)).first;
    }
    room_->Put(known->second, job);
  }

 private:
  const std::shared_ptr<const core::ClusterViews> clusters_;
  const std::shared_ptr<const contract::PlaceLimits> limits_;
  AnswerRoom* const room_;
  absl::flat_hash_map<core::Requirements, v1::StateReason> reasons_;
};

}  // namespace

void AddQueueReasons(const Services& services, const store::Scope& scope,
                     const std::vector<v1::Job*>& jobs, AnswerRoom& room) {
  std::vector<v1::Job*> waiting, unread;
  std::vector<uint64_t> ids;
  for (v1::Job* const job : jobs) {
    if (!WaitsForCluster(*job)) continue;
    waiting.push_back(job);
    if (job->has_spec()) continue;
    unread.push_back(job);
    ids.push_back(job->id());
  }
  if (waiting.empty()) return;
  Reasons reasons(services, &room);
  for (v1::Job* const job : waiting) {
    if (job->has_spec()) reasons.AddTo(job, job->spec());
  }
  if (ids.empty()) return;
  const auto specs = services.store->GetSpecs(scope, ids);
  // Jobs without reasons are better than no jobs.
  if (!specs.ok()) return;
  for (size_t i = 0; i < unread.size(); ++i) reasons.AddTo(unread[i], (*specs)[i].spec);
}

}  // namespace muster::broker
