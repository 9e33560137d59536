// Keeps enroot's credentials for private registries: a file in netrc's form, in the home that the
// agent's user has on the cluster. A secret is written into it and is never part of a message, a
// log or a command line.
#ifndef MUSTER_AGENTS_SLURM_CREDENTIALS_H_
#define MUSTER_AGENTS_SLURM_CREDENTIALS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/hosts/host.h"

namespace muster::slurm {

// Tokens of registries have a few thousand bytes at most.
inline constexpr size_t kMaxSecretBytes = 16 << 10;
// That is one line for each of thousands of registries.
inline constexpr size_t kMaxCredentialsBytes = 1 << 20;

struct Credential {
  std::string registry;  // "nvcr.io", "registry.example.org:5000", "docker.io"
  std::string user;      // empty for nvcr.io: "$oauthtoken", the only one that it takes
  std::string secret;
};

// Fills in the user, and says what is wrong. INVALID_ARGUMENT never quotes the secret.
absl::StatusOr<Credential> CheckCredential(Credential credential);

// Returns the names under which enroot looks for a registry's credentials, the registry's own
// first, without port: nvcr.io and Docker Hub have another host that hands out tokens.
std::vector<std::string> CredentialHosts(std::string_view registry);

// Returns the hosts that have an entry in the file's text, in its order.
std::vector<std::string> HostsWithCredentials(std::string_view text);

// Returns the file's text with the entries for the registry in place of those that it has for the
// same hosts. All other lines stay as they are.
std::string WithCredential(std::string_view text, const Credential& credential);

// The facts about the file that a preflight can report.
struct CredentialsFile {
  std::string path;
  bool exists = false;
  // The permission bits; enroot ignores them, but 0600 is what a secret needs.
  uint32_t mode = 0;
  std::vector<std::string> hosts;

  // Returns whether an image of the registry could be pulled with it.
  bool Covers(std::string_view registry) const;
};

// UNAVAILABLE: the host could not be asked.
absl::StatusOr<CredentialsFile> LookAtCredentials(hosts::Host* host);

// Writes the entries, mode 0600, in one step. The credential is a checked one. Returns the file's
// path.
absl::StatusOr<std::string> InstallCredential(hosts::Host* host, const Credential& credential);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_CREDENTIALS_H_
