#include "broker/app/queue_reasons.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/time/clock.h"
#include "broker/app/project_limits.h"
#include "broker/core/cluster_view.h"
#include "broker/core/requirements.h"
#include "broker/core/use_view.h"
#include "broker/engine/engine.h"
#include "broker/store/store.h"
#include "contract/launch_refusals.h"
#include "contract/place_limits.h"
#include "contract/quota_reached.h"
#include "contract/reservations.h"
#include "contract/sentences.h"
#include "contract/states.h"

namespace muster::broker {
namespace {

bool WaitsForCluster(const v1::Job& job) {
  return job.state() == v1::JOB_STATE_QUEUED && !job.held() && !job.has_retry_time();
}

// Its cluster, which says why the job waits there, does not know that room is kept for it.
void TellOfKeptRoom(const core::ClusterViews& clusters, v1::Job* job, AnswerRoom* room) {
  if (!job->has_state_reason() || !core::IsRoomKept(job->id(), clusters)) return;
  v1::StateReason reason = job->state_reason();
  contract::SayRoomIsKept(&reason);
  room->Put(reason, job);
}

// Keeps one reason for all jobs that are alike.
class Reasons {
 public:
  Reasons(const Services& services, const store::Scope& scope, AnswerRoom* room)
      : store_(services.store),
        scope_(scope),
        clusters_(services.engine->clusters()),
        uses_(services.engine->uses()),
        projects_(ProjectsOf(services)),
        room_(room) {}

  void AddTo(v1::Job* job, const v1::JobSpec& spec) {
    if (AddDependency(job, spec)) return;
    const std::shared_ptr<const v1::Job> with_runs = FindRuns(*job);
    if (with_runs == nullptr && !job->cluster().empty()) return;
    const bool is_refused = with_runs != nullptr && !contract::RefusalsOf(*with_runs).empty();
    // Others of its priority do not get what is kept for one job, and were not refused where it
    // was.
    const bool is_alone = is_refused || core::IsRoomKept(job->id(), *clusters_);
    // Users differ in what their quotas leave them.
    Key key(core::RequirementsOf(spec), job->user(), {job->priority(), is_alone ? job->id() : 0});
    auto known = reasons_.find(key);
    if (known == reasons_.end()) {
      if (reasons_.size() == kMaxExplained) return;
      v1::StateReason reason = ReasonOf(std::get<0>(key), std::get<1>(key), std::get<2>(key),
                                        is_refused ? with_runs.get() : nullptr);
      known = reasons_.emplace(std::move(key), std::move(reason)).first;
    }
    room_->Put(known->second, job);
  }

 private:
  using Key = std::tuple<core::Requirements, std::string, core::Turn>;

  v1::StateReason ReasonOf(const core::Requirements& requirements, const std::string& user,
                           const core::Turn& turn, const v1::Job* with_runs) const {
    if (const auth::Project* project = projects_->Find(requirements.project)) {
      const auto of_project = uses_.Read(project->name);
      const auto of_user = user.empty() ? nullptr : uses_.Read(project->name, user);
      const auto reached =
          core::WhyOverQuota(requirements, user, project->share, of_project.get(), of_user.get());
      if (reached) return contract::QuotaReason(*reached);
    }
    return core::WhyQueued(requirements, turn, *clusters_, *projects_->places(), absl::Now(),
                           with_runs);
  }

  // Returns the job with all its runs; null: it had none, or they are not known.
  std::shared_ptr<const v1::Job> FindRuns(const v1::Job& job) {
    if (job.cluster().empty()) return nullptr;
    // A list has no run, or the latest one.
    if (job.runs_size() > 0 && job.runs(0).number() == 1) return std::make_shared<v1::Job>(job);
    if (runs_read_ == kMaxRunsRead) return nullptr;
    ++runs_read_;
    absl::StatusOr<v1::Job> read = store_->GetJob(scope_, job.id());
    return read.ok() ? std::make_shared<v1::Job>(*std::move(read)) : nullptr;
  }

  // Says which job it waits for, the first of those that depends_on names. False: for none.
  bool AddDependency(v1::Job* job, const v1::JobSpec& spec) {
    const auto count = static_cast<size_t>(spec.depends_on_size());
    if (count == 0) return false;
    looked_up_ += count;
    if (looked_up_ > kMaxLookedUp) return true;
    std::vector<uint64_t> ids;
    for (const v1::JobDependency& one : spec.depends_on()) ids.push_back(one.job_id());
    const auto states = store_->GetStates(ids);
    if (!states.ok()) return true;
    const auto is_open = [](v1::JobState state) {
      return state != v1::JOB_STATE_UNSPECIFIED && !contract::IsTerminal(state);
    };
    const auto open = std::find_if(states->begin(), states->end(), is_open);
    if (open == states->end()) return false;
    const std::string subject = fmt::format("{}", ids[open - states->begin()]);
    const auto others = static_cast<size_t>(std::count_if(open + 1, states->end(), is_open));
    room_->Put(contract::WaitsForJob(subject, others), job);
    return true;
  }

  const store::Store* const store_;
  const store::Scope& scope_;
  size_t looked_up_ = 0;
  size_t runs_read_ = 0;
  const std::shared_ptr<const core::ClusterViews> clusters_;
  const UseBoard& uses_;
  const std::shared_ptr<const auth::ProjectTable> projects_;
  AnswerRoom* const room_;
  absl::flat_hash_map<Key, v1::StateReason> reasons_;
};

}  // namespace

void AddQueueReasons(const Services& services, const store::Scope& scope,
                     const std::vector<v1::Job*>& jobs, AnswerRoom& room, SpecsRead read) {
  std::vector<v1::Job*> waiting, unread;
  std::vector<uint64_t> ids;
  const std::shared_ptr<const core::ClusterViews> clusters = services.engine->clusters();
  for (v1::Job* const job : jobs) {
    if (job->state() == v1::JOB_STATE_PENDING) TellOfKeptRoom(*clusters, job, &room);
    if (!WaitsForCluster(*job)) continue;
    waiting.push_back(job);
    if (job->has_spec() && read == SpecsRead::kWhole) continue;
    unread.push_back(job);
    ids.push_back(job->id());
  }
  if (waiting.empty()) return;
  Reasons reasons(services, scope, &room);
  for (v1::Job* const job : waiting) {
    if (job->has_spec() && read == SpecsRead::kWhole) reasons.AddTo(job, job->spec());
  }
  if (ids.empty()) return;
  const auto specs = services.store->GetSpecs(scope, ids);
  // Jobs without reasons are better than no jobs.
  if (!specs.ok()) return;
  for (size_t i = 0; i < unread.size(); ++i) reasons.AddTo(unread[i], (*specs)[i].spec);
}

}  // namespace muster::broker
