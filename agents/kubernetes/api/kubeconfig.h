// The address of an API server and the agent's identity there, as kubectl reads them from
// kubeconfig files, or as a pod finds them.
//
// Source: https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/
// and https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/.
#ifndef MUSTER_AGENTS_KUBERNETES_API_KUBECONFIG_H_
#define MUSTER_AGENTS_KUBERNETES_API_KUBECONFIG_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::kubernetes {

// A program that prints an ExecCredential of client.authentication.k8s.io.
struct ExecPlugin {
  std::string api_version;  // client.authentication.k8s.io/v1 or /v1beta1
  std::string command;      // looked up in PATH if it has no '/'; relative paths are made absolute
  std::vector<std::string> args;
  std::map<std::string, std::string> env;
  std::string install_hint;  // the file's words for users who lack the program; may be empty
  bool wants_cluster = false;
};

// The agent's identity. Several may be set: a certificate goes with the connection, a token with
// each request; exec stands in for both.
struct Identity {
  std::string certificate_pem;
  std::string key_pem;
  // The files of these two, read again now and then; empty if the kubeconfig has them itself.
  std::string certificate_file;
  std::string key_file;
  std::string token;
  std::string token_file;  // read again now and then, because tokens are renewed in place
  std::string user;        // basic authentication
  std::string password;
  std::optional<ExecPlugin> exec;

  // Returns whether others may renew them without the agent: what is refused now may be good later.
  bool IsOfFiles() const { return !token_file.empty() || !certificate_file.empty(); }
};

struct Endpoint {
  std::string context;  // empty: the pod's own account
  std::string server;   // "https://host:port", perhaps with a path, without a '/' at its end
  std::string ca_pem;   // empty: the machine's authorities
  std::string ca_file;  // where ca_pem is from, read again now and then; empty: it stays
  std::string tls_server_name;
  std::string proxy_url;  // empty: as the environment says (HTTPS_PROXY, NO_PROXY)
  bool skips_tls_verify = false;
  std::string name_space = "default";
  Identity identity;
};

// Reads the context of that name, or else the current one, from the files together: of two entries
// with one name the first file's counts. A file that is not there is left out unless it is the only
// one. INVALID_ARGUMENT and NOT_FOUND name the file, the entry and what to do.
absl::StatusOr<Endpoint> ReadKubeconfig(const std::vector<std::string>& files,
                                        const std::string& context);

// Returns the files in $KUBECONFIG (with colons between them), or else ~/.kube/config; empty if
// there are none.
std::vector<std::string> DefaultKubeconfigFiles();

// The account of the pod that this process runs in. FAILED_PRECONDITION: it runs in none.
// `directory` is where Kubernetes mounts it.
inline constexpr char kServiceAccountDirectory[] = "/var/run/secrets/kubernetes.io/serviceaccount";
absl::StatusOr<Endpoint> InClusterEndpoint(const std::string& directory = kServiceAccountDirectory);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_API_KUBECONFIG_H_
