#include "agents/app/credentials_command.h"

#include <fmt/core.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "agents/hosts/local_host.h"
#include "agents/hosts/ssh_host.h"
#include "agents/kubernetes/api/endpoint.h"
#include "agents/kubernetes/cluster/pull_secret.h"
#include "agents/kubernetes/manifest/projects.h"
#include "agents/slurm/credentials.h"
#include "contract/errors.h"
#include "contract/text.h"

namespace muster::agents {
namespace {

absl::StatusOr<std::unique_ptr<hosts::Host>> MakeHost(const AgentConfig& config) {
  if (config.slurm_ssh.hosts.empty()) return std::make_unique<hosts::LocalHost>();
  absl::StatusOr<std::unique_ptr<hosts::SshHost>> host = hosts::SshHost::Create(config.slurm_ssh);
  if (!host.ok()) return host.status();
  return *std::move(host);
}

// All of standard input, without the line's end.
absl::StatusOr<std::string> ReadSecret() {
  if (isatty(STDIN_FILENO) != 0) {
    return absl::FailedPreconditionError(
        "the secret is read from standard input, which must not be a terminal: add <FILE, or pipe "
        "it in from a password manager");
  }
  // One byte more than is good, so that CheckCredential sees what is too long.
  std::string secret;
  while (secret.size() <= slurm::kMaxSecretBytes + 1) {
    char buffer[4096];
    const ssize_t count = read(STDIN_FILENO, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::ErrnoToStatus(errno, "standard input cannot be read");
    if (count == 0) break;
    secret.append(buffer, static_cast<size_t>(count));
  }
  while (secret.ends_with('\n') || secret.ends_with('\r')) secret.pop_back();
  return secret;
}

// The words of a bad field, for a command line.
absl::Status WithField(const absl::Status& status) {
  const auto bad = contract::GetBadRequest(status);
  if (!bad.has_value() || bad->field_violations().empty()) return status;
  const auto& field = bad->field_violations(0);
  return absl::InvalidArgumentError(fmt::format("{}: {}", field.field(), field.description()));
}

absl::StatusOr<std::string> InstallOnKubernetes(const AgentConfig& config,
                                                kubernetes::RegistryCredential given) {
  const absl::StatusOr<kubernetes::RegistryCredential> credential =
      kubernetes::CheckRegistryCredential(std::move(given));
  if (!credential.ok()) return WithField(credential.status());
  absl::StatusOr<kubernetes::Endpoint> endpoint = kubernetes::FindEndpoint(config.kubernetes);
  if (!endpoint.ok()) return endpoint.status();
  hosts::LocalHost host;
  kubernetes::Api api(*std::move(endpoint), &host);
  const absl::StatusOr<kubernetes::KubernetesConfig> whole =
      kubernetes::WithProjects(config.kubernetes);
  if (!whole.ok()) return whole.status();
  return kubernetes::InstallPullSecret(*whole, &api, *credential);
}

absl::StatusOr<std::string> InstallOnSlurm(const AgentConfig& config, slurm::Credential given) {
  const absl::StatusOr<slurm::Credential> credential = slurm::CheckCredential(std::move(given));
  if (!credential.ok()) return WithField(credential.status());
  const absl::StatusOr<std::unique_ptr<hosts::Host>> host = MakeHost(config);
  if (!host.ok()) return host.status();
  const absl::StatusOr<std::string> path = slurm::InstallCredential(host->get(), *credential);
  if (!path.ok()) return path.status();
  return fmt::format("{} on {} has the credentials for {}", *path, (*host)->Name(),
                     fmt::join(slurm::CredentialHosts(credential->registry), " and "));
}

}  // namespace

absl::StatusOr<std::string> InstallCredentials(const AgentConfig& config,
                                               const std::string& registry,
                                               const std::string& user) {
  if (config.kind == v1::CLUSTER_KIND_MACHINES)
    return absl::FailedPreconditionError("a cluster of kind machines runs no images");
  if (config.kind == v1::CLUSTER_KIND_MUSTER) {
    return absl::FailedPreconditionError(
        "the images of a cluster of kind muster are pulled behind the other broker; give the "
        "credentials to the agents of its clusters");
  }
  absl::StatusOr<std::string> secret = ReadSecret();
  if (!secret.ok()) return secret.status();
  if (config.kind == v1::CLUSTER_KIND_KUBERNETES)
    return InstallOnKubernetes(config, {registry, user, *std::move(secret)});
  return InstallOnSlurm(config, {registry, user, *std::move(secret)});
}

}  // namespace muster::agents
