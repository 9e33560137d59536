// What a request to the API server carries to say who the agent is.
#ifndef MUSTER_AGENTS_KUBERNETES_CREDENTIALS_H_
#define MUSTER_AGENTS_KUBERNETES_CREDENTIALS_H_

#include <mutex>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/hosts/host.h"
#include "agents/kubernetes/kubeconfig.h"

namespace muster::kubernetes {

struct Credential {
  std::string authorization;  // the header's value; empty: none
  std::string certificate_pem;
  std::string key_pem;
  std::optional<absl::Time> expiry;
};

// What an exec plug-in printed. INVALID_ARGUMENT says what is wrong with it; no secret is in it.
absl::StatusOr<Credential> ParseExecCredential(const std::string& text,
                                               const std::string& api_version);

// Thread-safe. Errors are UNAUTHENTICATED and name the file or the program and what to do; no
// secret is in them.
class Credentials {
 public:
  // `host` is this machine, for plug-ins; it must outlive this object.
  Credentials(Endpoint endpoint, hosts::Host* host)
      : endpoint_(std::move(endpoint)), host_(*host) {}

  // The present one; a token file is read again each minute, a plug-in runs again when what it
  // gave has expired. May block for as long as a plug-in may run.
  absl::StatusOr<Credential> Get();
  // The server has refused this one: the next Get makes another, if there is a way to.
  void Refuse(const Credential& refused);

 private:
  absl::StatusOr<Credential> Make();
  absl::StatusOr<Credential> RunPlugin(const ExecPlugin& plugin);

  const Endpoint endpoint_;
  hosts::Host& host_;
  std::mutex mutex_;  // held while a plug-in runs: one is enough
  std::optional<Credential> credential_;
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_CREDENTIALS_H_
