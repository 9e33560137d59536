// Credentials of private registries, kept in a Secret of each namespace that runs are in. A
// password is part of no message and no log.
#ifndef MUSTER_AGENTS_KUBERNETES_CLUSTER_PULL_SECRET_H_
#define MUSTER_AGENTS_KUBERNETES_CLUSTER_PULL_SECRET_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/kubernetes/api/api.h"
#include "agents/kubernetes/api/json_fields.h"
#include "agents/kubernetes/settings/kubernetes_config.h"

namespace muster::kubernetes {

// The name of the Secret if the settings give none.
inline constexpr char kDefaultPullSecret[] = "muster-pull";

struct RegistryCredential {
  std::string registry;  // "nvcr.io", "registry.example.org:5000", "docker.io"
  std::string user;      // empty for nvcr.io: "$oauthtoken", the only one that it takes
  std::string password;
};

// Fills in the user. INVALID_ARGUMENT says what is wrong and never quotes the password.
absl::StatusOr<RegistryCredential> CheckRegistryCredential(RegistryCredential credential);

// The Secret's .dockerconfigjson with the credential in place of what it has for the same registry.
// `text` may be empty. FAILED_PRECONDITION: it is none.
absl::StatusOr<std::string> WithRegistry(const std::string& text,
                                         const RegistryCredential& credential);
// The registries in a Secret's .dockerconfigjson, as they are written there; none if it is none.
std::vector<std::string> RegistriesOf(const Json& secret);

// The credential is a checked one. Makes the Secret in each of the agent's namespaces, or puts the
// credential into it; other registries in it stay. The Secret is the first of the settings'
// image_pull_secrets, or kDefaultPullSecret. Returns what to tell the operator. The first error
// ends it: the server's words with the remedy.
absl::StatusOr<std::string> InstallPullSecret(const KubernetesConfig& config, Api* api,
                                              const RegistryCredential& credential);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_CLUSTER_PULL_SECRET_H_
