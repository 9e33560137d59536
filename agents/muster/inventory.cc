#include "agents/muster/inventory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "agents/muster/translate.h"
#include "contract/checks.h"
#include "contract/issues.h"
#include "contract/states.h"
#include "contract/text.h"

namespace muster::remote {
namespace {

constexpr int kMaxInstances = 16;  // as Inventory.broker_instances says
constexpr int kMaxIssues = 100;    // as Inventory.issues says
constexpr int kMaxNodes = 10'000;  // as ClusterDetails.nodes says

std::string StateOf(const v1::Cluster& cluster, const v1::Pool& pool) {
  if (cluster.state() != v1::CLUSTER_STATE_CONNECTED) return "disconnected";
  if (cluster.has_cordon()) return "cordoned";
  if (!cluster.scheduler_error().empty()) return "no answer";
  return pool.state();
}

void AddPools(const v1::Cluster& cluster, v1::Inventory* inventory) {
  const bool takes_jobs = cluster.state() == v1::CLUSTER_STATE_CONNECTED && !cluster.has_cordon() &&
                          cluster.scheduler_error().empty();
  for (const v1::Pool& there : cluster.inventory().pools()) {
    v1::Pool* const pool = inventory->add_pools();
    *pool = there;
    pool->set_name(PoolName(cluster.name(), there.name()));
    pool->set_available(takes_jobs && there.available());
    pool->set_state(StateOf(cluster, there));
    pool->clear_unavailable_since();
  }
}

// The remote broker finds a cluster that runs the image, or the job without one.
v1::ImageSupport ImagesOf(const std::vector<const v1::Cluster*>& clusters) {
  bool is_required = !clusters.empty(), runs_none = true;
  for (const v1::Cluster* cluster : clusters) {
    const v1::ImageSupport images = cluster->inventory().images();
    is_required = is_required && images == v1::IMAGE_SUPPORT_REQUIRED;
    const bool is_unknown_machine =
        cluster->kind() == v1::CLUSTER_KIND_MACHINES && images == v1::IMAGE_SUPPORT_UNSPECIFIED;
    runs_none = runs_none && (images == v1::IMAGE_SUPPORT_NONE || is_unknown_machine);
  }
  if (is_required) return v1::IMAGE_SUPPORT_REQUIRED;
  return runs_none ? v1::IMAGE_SUPPORT_NONE : v1::IMAGE_SUPPORT_OPTIONAL;
}

void AddIssues(const v1::Cluster& cluster, v1::Inventory* inventory) {
  for (const v1::ClusterIssue& there : cluster.inventory().issues()) {
    if (inventory->issues_size() == kMaxIssues) return;
    *inventory->add_issues() = contract::OfRemoteCluster(cluster.name(), there);
  }
}

std::vector<const v1::Cluster*> Used(const RemoteConfig& config,
                                     const std::vector<v1::Cluster>& clusters) {
  std::vector<const v1::Cluster*> used;
  for (const v1::Cluster& cluster : clusters) {
    if (IsUsed(config, cluster.name())) used.push_back(&cluster);
  }
  return used;
}

v1::ClusterCheck CheckOf(v1::CheckCode code, const std::string& subject, const absl::Status& is,
                         const std::string& seen, const std::string& remedy) {
  if (is.ok()) return contract::MakeCheck(code, v1::CHECK_RESULT_OK, subject, seen);
  return contract::MakeCheck(code, v1::CHECK_RESULT_FAIL, subject, std::string(ToStd(is.message())),
                             remedy);
}

v1::ClusterCheck ClusterLine(const v1::Cluster& cluster) {
  const std::string subject = fmt::format("cluster {} there", cluster.name());
  const std::string kind(contract::Name(cluster.kind()));
  if (cluster.state() != v1::CLUSTER_STATE_CONNECTED) {
    return contract::MakeCheck(v1::CHECK_CODE_POOL, v1::CHECK_RESULT_WARN, subject,
                               kind + ", and its agent is not connected",
                               "its operator starts muster-agent there");
  }
  if (cluster.has_cordon()) {
    return contract::MakeCheck(v1::CHECK_CODE_POOL, v1::CHECK_RESULT_WARN, subject,
                               kind + ", and it is cordoned",
                               "an operator of the remote broker ends it");
  }
  return contract::MakeCheck(v1::CHECK_CODE_POOL, v1::CHECK_RESULT_OK, subject,
                             fmt::format("{}, {} pools", kind, cluster.inventory().pools_size()));
}

}  // namespace

bool IsUsed(const RemoteConfig& config, const std::string& cluster) {
  return config.clusters.empty() || std::find(config.clusters.begin(), config.clusters.end(),
                                              cluster) != config.clusters.end();
}

v1::Inventory InventoryOf(const RemoteConfig& config, const v1::WhoAmIResponse& who,
                          const std::vector<v1::Cluster>& clusters) {
  v1::Inventory inventory;
  inventory.set_identity(who.broker_instance());
  inventory.set_scheduler_version(fmt::format("muster broker {}", who.broker_instance()));
  inventory.add_broker_instances(who.broker_instance());
  for (const std::string& instance : who.reached_instances()) {
    if (inventory.broker_instances_size() < kMaxInstances) inventory.add_broker_instances(instance);
  }
  const std::vector<const v1::Cluster*> used = Used(config, clusters);
  bool takes_uploads = false;
  for (const v1::Cluster* cluster : used) {
    AddPools(*cluster, &inventory);
    AddIssues(*cluster, &inventory);
    takes_uploads = takes_uploads || cluster->inventory().takes_uploads();
  }
  inventory.set_images(ImagesOf(used));
  inventory.set_takes_uploads(takes_uploads && config.files != nullptr);
  if (!inventory.pools().empty()) return inventory;
  // An inventory has a pool, and this one takes no jobs until there is a cluster.
  v1::Pool* const none = inventory.add_pools();
  none->set_name("none");
  none->set_state("no clusters there");
  return inventory;
}

void AddDetails(const std::string& cluster, const v1::ClusterDetails& there,
                v1::ClusterDetails* details) {
  for (const v1::PoolLoad& load : there.pools()) {
    v1::PoolLoad* const added = details->add_pools();
    *added = load;
    added->set_pool(PoolName(cluster, load.pool()));
    if (added->has_now()) added->mutable_now()->set_name(added->pool());
  }
  for (const v1::Node& node : there.nodes()) {
    if (details->nodes_size() == kMaxNodes) return;
    v1::Node* const added = details->add_nodes();
    *added = node;
    for (std::string& pool : *added->mutable_pools()) pool = PoolName(cluster, pool);
  }
}

v1::ClusterChecks ChecksOf(const RemoteConfig& config,
                           const absl::StatusOr<v1::WhoAmIResponse>& who,
                           const absl::Status& project,
                           const absl::StatusOr<std::vector<v1::Cluster>>& clusters) {
  v1::ClusterChecks checks;
  const std::string broker = "remote broker " + config.address;
  *checks.add_checks() = CheckOf(
      v1::CHECK_CODE_SCHEDULER, broker, who.status(),
      who.ok() ? fmt::format("broker {} knows this agent as user {}", who->broker_instance(),
                             who->user())
               : "",
      "see that it runs, and that muster.address, muster.ca_file and muster.token_file fit");
  if (!who.ok()) return checks;
  *checks.add_checks() = CheckOf(
      v1::CHECK_CODE_TRIAL, "a small job there, only checked", project, "it would be accepted",
      "let the agent's user submit there, in the project that pays (muster.project)");
  if (!clusters.ok()) {
    *checks.add_checks() = CheckOf(v1::CHECK_CODE_RIGHTS, "clusters there", clusters.status(), "",
                                   "let the agent's user see them");
    return checks;
  }
  const std::vector<const v1::Cluster*> used = Used(config, *clusters);
  for (const v1::Cluster* cluster : used) *checks.add_checks() = ClusterLine(*cluster);
  if (used.empty()) {
    *checks.add_checks() = contract::MakeCheck(
        v1::CHECK_CODE_POOL, v1::CHECK_RESULT_FAIL, "clusters there",
        config.clusters.empty()
            ? "there are none"
            : fmt::format("none of {} is there", fmt::join(config.clusters, ", ")),
        "connect a cluster to the remote broker, or correct muster.clusters");
  }
  return checks;
}

}  // namespace muster::remote
