// The account that deploy/kubernetes gives an agent, on a test cluster.
#ifndef MUSTER_TESTS_INTEGRATION_KUBERNETES_LEAST_RIGHTS_H_
#define MUSTER_TESTS_INTEGRATION_KUBERNETES_LEAST_RIGHTS_H_

#include <string>

#include "tests/integration/kubernetes/test_cluster.h"

namespace muster::kubernetes {

// Returns a token of the account with the rights that those files give it in the namespace, and
// with `cluster_rights` those of the optional role. Once a cluster has the latter, it keeps them.
std::string LeastRightsToken(TestCluster& cluster, const std::string& name_space,
                             bool cluster_rights = true);

// Returns the path of a kubeconfig of the account, with that namespace.
std::string LeastRightsKubeconfig(TestCluster& cluster, const std::string& name_space,
                                  bool cluster_rights = true);

}  // namespace muster::kubernetes

#endif  // MUSTER_TESTS_INTEGRATION_KUBERNETES_LEAST_RIGHTS_H_
