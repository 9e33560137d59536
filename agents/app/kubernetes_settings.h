// The settings of an agent of a Kubernetes cluster.
#ifndef MUSTER_AGENTS_APP_KUBERNETES_SETTINGS_H_
#define MUSTER_AGENTS_APP_KUBERNETES_SETTINGS_H_

#include <vector>

#include "agents/kubernetes/settings/kubernetes_config.h"
#include "daemon/settings.h"

namespace muster::agents {

// "kubernetes.*"; they write into `config`.
std::vector<Setting> KubernetesSettings(kubernetes::KubernetesConfig* config);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_APP_KUBERNETES_SETTINGS_H_
