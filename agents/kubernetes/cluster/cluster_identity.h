// Identifies the cluster, so that an agent does not take another one for the one that has its runs.
#ifndef MUSTER_AGENTS_KUBERNETES_CLUSTER_CLUSTER_IDENTITY_H_
#define MUSTER_AGENTS_KUBERNETES_CLUSTER_CLUSTER_IDENTITY_H_

#include <string>

#include "absl/status/statusor.h"
#include "agents/kubernetes/api/api.h"
#include "sync/mutex.h"

namespace muster::kubernetes {

// Returns "1.36.3" for {"gitVersion": "v1.36.3"}, or the error of the call.
absl::StatusOr<std::string> ReadVersion(Api* api);
// Returns the UID of the namespace kube-system, or the error of the call.
absl::StatusOr<std::string> ReadIdentity(Api* api);

// Any thread may use it.
class ClusterIdentity {
 public:
  // Kept in a small file of `directory`, which is made when there is something to keep.
  explicit ClusterIdentity(const std::string& directory);

  // Returns the identity that was learnt once; empty if none.
  std::string known() const;
  // Asks the server for its identity, which is kept from now on. If the server cannot be asked, or
  // does not tell, the known identity stays; without one its error is returned. FAILED_PRECONDITION
  // with the reason WRONG_CLUSTER: it is another cluster; names both.
  absl::StatusOr<std::string> Learn(Api* api);

 private:
  const std::string path_;
  mutable Mutex mutex_;
  std::string known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_CLUSTER_CLUSTER_IDENTITY_H_
