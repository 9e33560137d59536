#include "broker/app/queue_reasons.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "broker/app/project_limits.h"
#include "broker/core/cluster_view.h"
#include "broker/core/requirements.h"
#include "broker/core/use_view.h"
#include "broker/engine/engine.h"
#include "broker/store/store.h"
#include "contract/quota_reached.h"

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
        uses_(services.engine->uses()),
        projects_(ProjectsOf(services)),
        room_(room) {}

  void AddTo(v1::Job* job, const v1::JobSpec& spec) {
    // Users differ in what their quotas leave them.
    std::pair<core::Requirements, std::string> key(core::RequirementsOf(spec), job->user());
    auto known = reasons_.find(key);
    if (known == reasons_.end()) {
      if (reasons_.size() == kMaxExplained) return;
      v1::StateReason reason = ReasonOf(key.first, key.second);
      known = reasons_.emplace(std::move(key), std::move(reason)).first;
    }
    room_->Put(known->second, job);
  }

 private:
  v1::StateReason ReasonOf(const core::Requirements& requirements, const std::string& user) const {
    if (const auth::Project* project = projects_->Find(requirements.project)) {
      const auto of_project = uses_.Read(project->name);
      const auto of_user = user.empty() ? nullptr : uses_.Read(project->name, user);
      const auto reached =
          core::WhyOverQuota(requirements, user, project->share, of_project.get(), of_user.get());
      if (reached) return contract::QuotaReason(*reached);
    }
    return core::WhyQueued(requirements, *clusters_, *projects_->places());
  }

  const std::shared_ptr<const core::ClusterViews> clusters_;
  const UseBoard& uses_;
  const std::shared_ptr<const auth::ProjectTable> projects_;
  AnswerRoom* const room_;
  absl::flat_hash_map<std::pair<core::Requirements, std::string>, v1::StateReason> reasons_;
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
