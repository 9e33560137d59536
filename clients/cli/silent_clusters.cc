#include "clients/cli/silent_clusters.h"

#include <fmt/format.h>

#include "clients/cli/text.h"
#include "contract/states.h"

namespace muster::cli {

v1::Job SilentClusters::Explained(const v1::Job& job, std::optional<absl::Time> now) {
  v1::Job explained = job;
  // A queued job was given to no cluster; the broker says what it waits for.
  if (job.cluster().empty() || job.state() == v1::JOB_STATE_QUEUED ||
      contract::IsTerminal(job.state())) {
    return explained;
  }
  if (!last_seen_.has_value()) Ask();
  const auto silent = last_seen_->find(job.cluster());
  if (silent == last_seen_->end()) return explained;
  explained.set_reason(fmt::format(
      "no word from cluster {} since {} (its agent is not connected); last known: {}",
      job.cluster(), now.has_value() ? Ago(silent->second, *now) : Rfc3339(silent->second),
      job.reason().empty() ? contract::Name(job.state()) : job.reason()));
  return explained;
}

void SilentClusters::Ask() {
  last_seen_.emplace();
  v1::ListClustersRequest request;
  do {
    const auto page = client_.ListClusters(request);
    if (!page.ok()) return;
    for (const v1::Cluster& cluster : page->clusters()) {
      if (cluster.state() == v1::CLUSTER_STATE_CONNECTED) continue;
      last_seen_->emplace(cluster.name(), cluster.last_seen());
    }
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
}

}  // namespace muster::cli
