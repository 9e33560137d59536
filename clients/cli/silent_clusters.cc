#include "clients/cli/silent_clusters.h"

#include <fmt/format.h>

#include "clients/cli/text.h"
#include "contract/states.h"

namespace muster::cli {
namespace {

bool IsSilent(const v1::Cluster& cluster) {
  return cluster.state() != v1::CLUSTER_STATE_CONNECTED || !cluster.scheduler_error().empty();
}

std::string WhyOf(const v1::Cluster& cluster) {
  if (cluster.state() != v1::CLUSTER_STATE_CONNECTED) return "its agent is not connected";
  return "it does not answer its agent: " + cluster.scheduler_error();
}

}  // namespace

v1::Job SilentClusters::Explained(const v1::Job& job, std::optional<absl::Time> now) {
  v1::Job explained = job;
  // A queued job was given to no cluster; the broker says what it waits for.
  if (job.cluster().empty() || job.state() == v1::JOB_STATE_QUEUED ||
      contract::IsTerminal(job.state())) {
    return explained;
  }
  if (!silent_.has_value()) Ask();
  const auto found = silent_->find(job.cluster());
  if (found == silent_->end()) return explained;
  const v1::Cluster& cluster = found->second;
  const google::protobuf::Timestamp& since = cluster.state() == v1::CLUSTER_STATE_CONNECTED
                                                 ? cluster.scheduler_observed_at()
                                                 : cluster.last_seen();
  explained.mutable_state_reason()->set_code(v1::STATE_REASON_CODE_AGENT_DISCONNECTED);
  explained.mutable_state_reason()->set_message(fmt::format(
      "no word from cluster {} since {} ({}); last known: {}", job.cluster(),
      now.has_value() ? Ago(since, *now) : Rfc3339(since), WhyOf(cluster),
      job.has_state_reason() ? job.state_reason().message() : contract::Name(job.state())));
  return explained;
}

void SilentClusters::Ask() {
  silent_.emplace();
  v1::ListClustersRequest request;
  do {
    const auto page = client_.ListClusters(request);
    if (!page.ok()) return;
    for (const v1::Cluster& cluster : page->clusters()) {
      if (IsSilent(cluster)) silent_->emplace(cluster.name(), cluster);
    }
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
}

}  // namespace muster::cli
