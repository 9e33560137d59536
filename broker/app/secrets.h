// Manages the secrets of people and projects: names go out, and values only go in.
#ifndef MUSTER_BROKER_APP_SECRETS_H_
#define MUSTER_BROKER_APP_SECRETS_H_

#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "muster/v1/secrets_service.pb.h"

namespace muster::broker {

// Any thread may use it.
absl::StatusOr<v1::ListSecretsResponse> ListSecrets(const Principal& principal,
                                                    const Services& services,
                                                    const v1::ListSecretsRequest& request);

// These wait for the disk.
absl::StatusOr<v1::SetSecretResponse> SetSecret(const Principal& principal,
                                                const Services& services,
                                                const v1::SetSecretRequest& request);
absl::StatusOr<v1::DeleteSecretResponse> DeleteSecret(const Principal& principal,
                                                      const Services& services,
                                                      const v1::DeleteSecretRequest& request);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_SECRETS_H_
