// Shows the resources of the cluster and the free part of them, kept up to date by watches: nothing
// is polled, and only the needed part of each object is kept.
#ifndef MUSTER_AGENTS_KUBERNETES_CLUSTER_CLUSTER_VIEW_H_
#define MUSTER_AGENTS_KUBERNETES_CLUSTER_CLUSTER_VIEW_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/kubernetes/api/api.h"
#include "agents/kubernetes/cluster/capacity.h"
#include "agents/kubernetes/cluster/obstacle.h"
#include "agents/kubernetes/settings/kubernetes_config.h"
#include "muster/agent/v1/agent_link.pb.h"
#include "muster/v1/cluster.pb.h"

namespace muster::kubernetes {

// Any thread may use it. Only those calls that say so ask the server.
class ClusterView {
 public:
  // Tells whether runs can be made and seen in a namespace, as the server says now;
  // PERMISSION_DENIED is told. Null: they can.
  using RunsState = std::function<absl::Status(const std::string& name_space)>;

  // Begins to watch at once. `api` must outlive this object. The cluster's identity is remembered
  // in `state_dir`, the agent's own directory. `runs_state` is asked by Inventory. `on_recovery` is
  // called, from any thread, when more is seen again than the latest inventory could know, or nodes
  // come, go or change; it must not block.
  ClusterView(const KubernetesConfig& config, Api* api, const std::string& state_dir,
              RunsState runs_state = nullptr, std::function<void()> on_recovery = nullptr);
  ~ClusterView();
  ClusterView(const ClusterView&) = delete;
  ClusterView& operator=(const ClusterView&) = delete;

  // Asks for version, identity and namespaces, and waits for the first lists. FAILED_PRECONDITION:
  // it is another cluster than the one whose runs are here; names both. Otherwise the error of the
  // call that failed.
  absl::StatusOr<v1::Inventory> Inventory();
  // Returns the identity of the cluster whose runs are here, as was learnt once; empty if none.
  std::string KnownIdentity() const;
  // Returns the present state; whether namespaces take runs is as in the latest inventory, so that
  // both say the same. Waits for the first lists. UNAVAILABLE: nodes could never be listed for
  // another reason than that the agent may not.
  absl::StatusOr<v1::ClusterDetails> Describe();

  // Returns the reason that the run can never start here, in words for its user; nothing if it may,
  // or the facts that would tell are not known.
  std::optional<std::string> Refusal(const agent::v1::Assignment& run);
  // Returns the present state behind runs that are starting, to be asked about many runs. This
  // object must outlive the result.
  std::unique_ptr<RoomLeft> TakeSnapshot(const std::vector<Alike>& starting);

  // Writes the type of the run's GPUs as the nodes' labels have it; manifests need that.
  // INVALID_ARGUMENT: it may be several.
  absl::Status SpellGpuType(v1::JobSpec* spec);
  // Writes down the cores and the memory of a run with GPUs whose job leaves one of them open, as
  // NeedIn has them; manifests need that.
  void FillResources(agent::v1::Assignment* run);

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_CLUSTER_CLUSTER_VIEW_H_
