#include <utility>

#include "broker/core/impl.h"
#include "broker/core/rerun_id.h"
#include "contract/states.h"

namespace muster::core {

namespace {

// Changes without a transition are not stored, so that a process does not know how many the one
// before it gave out after its last transition. It was not as many.
constexpr uint64_t kSequencesForgotten = 1'000'000'000;

}  // namespace

Core::Impl::Impl(Options options, Restored restored)
    : options_(std::move(options)),
      instance_(std::move(restored.instance)),
      broker_epoch_(restored.broker_epoch + 1),
      next_job_id_(restored.next_job_id),
      next_sequence_(restored.next_sequence +
                     (restored.broker_epoch > 0 ? kSequencesForgotten : 0)) {
  clusters_.push_back(nullptr);
  RestoreClusters(std::move(restored.clusters));
  RestoreJobs(std::move(restored.requirements), restored.jobs);
  RestoreRuns(std::move(restored.runs));
  RestoreRequests(restored.requests);
}

void Core::Impl::RestoreClusters(std::vector<PutCluster> clusters) {
  for (PutCluster& saved : clusters) {
    Cluster* cluster = AddCluster(saved.name);
    cluster->last_heard = saved.last_seen;
    cluster->saved = std::move(saved);
  }
}

void Core::Impl::RestoreJobs(std::vector<Requirements> requirements,
                             const std::vector<LiveJob>& jobs) {
  std::vector<Group*> groups;
  groups.reserve(requirements.size());
  for (Requirements& one : requirements) groups.push_back(GroupFor(std::move(one)));
  for (const LiveJob& saved : jobs) {
    Job job;
    job.sequence = static_cast<uint32_t>(saved.job_sequence);
    Group* group = groups[saved.requirements];
    job.group = group->id;
    ++group->jobs;
    job.runs = static_cast<uint16_t>(saved.runs);
    job.priority = static_cast<int16_t>(saved.priority);
    job.set_state(saved.state);
    job.recorded_state_value = job.state_value;
    job.cancel_requested = saved.cancel_requested;
    job.hold = saved.hold;
    if (saved.retry_time) retries_.Add(saved.id, absl::ToUnixMicros(*saved.retry_time));
    if (saved.start_time) job.start_unix_micros = absl::ToUnixMicros(*saved.start_time);
    jobs_.emplace_hint(jobs_.end(), saved.id, job);
    if (job.state() == v1::JOB_STATE_QUEUED) Enqueue(saved.id, job);
  }
}

void Core::Impl::RestoreRuns(std::vector<PutRun> runs) {
  for (PutRun& saved : runs) {
    Cluster* cluster = FindCluster(saved.run.cluster());
    if (cluster == nullptr) cluster = AddCluster(saved.run.cluster());
    const RunId id{saved.job, saved.run.number()};
    const bool is_active = !contract::IsTerminal(saved.run.state());
    if (is_active) ++cluster->active;
    auto job = jobs_.find(saved.job);
    if (job != jobs_.end() && job->second.runs == id.number) {
      job->second.cluster = cluster->index;
      if (is_active && job->second.held()) ++cluster->held;
    }
    cluster->runs.emplace(id, std::make_unique<v1::Run>(std::move(saved.run)));
  }
}

void Core::Impl::RestoreRequests(const std::vector<RememberedRequest>& requests) {
  for (const RememberedRequest& saved : requests) {
    if (IsOtherOfRerun(saved.request_id)) continue;
    const std::string_view project = IsFirstOfRerun(saved.request_id) ? "" : saved.project;
    const RequestMemory::Slot slot =
        requests_.Add({RequestKeyOf(project, saved.request_id), saved.fingerprint, saved.job});
    auto job = jobs_.find(saved.job);
    if (job != jobs_.end()) {
      job->second.request = slot;
    } else {
      requests_.JobEnded(slot, saved.end_time.value_or(absl::UnixEpoch()));
    }
  }
}

}  // namespace muster::core
