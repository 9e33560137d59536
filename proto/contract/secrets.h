// The rules of secrets and of their use by jobs.
#ifndef MUSTER_PROTO_CONTRACT_SECRETS_H_
#define MUSTER_PROTO_CONTRACT_SECRETS_H_

#include <cstddef>
#include <string_view>

#include "contract/errors.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::contract {

// A value has at most this many bytes, enough for a key, a certificate or a file of settings.
inline constexpr size_t kMaxSecretBytes = 64 << 10;
inline constexpr size_t kMaxSecretNameBytes = 128;
// These bound the secrets of one job and the bytes of their values together: they travel with each
// rank, and in a Kubernetes Secret, which has at most 1 MiB.
inline constexpr size_t kMaxJobSecrets = 64;
inline constexpr size_t kMaxJobSecretBytes = 256 << 10;

bool IsSecretName(std::string_view name);
void CheckSecretName(std::string_view field, std::string_view name, FieldErrors* errors);

// Adds what is wrong with the secrets that the job uses.
void CheckSecrets(const v1::JobSpec& spec, FieldErrors* errors);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_SECRETS_H_
