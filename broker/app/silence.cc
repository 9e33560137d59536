#include "broker/app/silence.h"

#include <optional>
#include <string>
#include <utility>

#include "broker/core/event_bounds.h"
#include "contract/sentences.h"
#include "contract/states.h"

namespace muster::broker {
namespace {

// A page of 1000 jobs says it twice for each; GetCluster shows more of it.
constexpr size_t kMaxErrorBytes = 256;

// A queued job was given to no cluster; its reason says what it waits for.
bool IsOnCluster(const v1::Job& job) {
  return !job.cluster().empty() && job.state() != v1::JOB_STATE_QUEUED &&
         !contract::IsTerminal(job.state());
}

std::optional<contract::Silence> SilenceOf(const core::ClusterView& cluster) {
  if (cluster.is_connected && cluster.scheduler_error.empty()) return std::nullopt;
  contract::Silence silence;
  silence.cluster = cluster.name();
  silence.is_agent_connected = cluster.is_connected;
  silence.scheduler_error = cluster.scheduler_error;
  core::Truncate(kMaxErrorBytes, &silence.scheduler_error);
  silence.since = cluster.is_connected ? cluster.scheduler_observed_at : cluster.last_heard;
  return silence;
}

}  // namespace

void AddSilence(const core::ClusterViews& clusters, const std::vector<v1::Job*>& jobs,
                AnswerRoom& room) {
  for (v1::Job* const job : jobs) {
    if (!IsOnCluster(*job)) continue;
    const core::ClusterView* cluster = core::FindView(job->cluster(), clusters);
    if (cluster == nullptr) continue;
    const std::optional<contract::Silence> silence = SilenceOf(*cluster);
    if (!silence) continue;
    v1::StateReason reason = contract::NoWord(*silence, *job);
    core::Truncate(core::kMaxDetailBytes, reason.mutable_message());
    room.Put(std::move(reason), job);
  }
}

}  // namespace muster::broker
