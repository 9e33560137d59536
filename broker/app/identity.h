// Who the caller is, and the tokens of people.
#ifndef MUSTER_BROKER_APP_IDENTITY_H_
#define MUSTER_BROKER_APP_IDENTITY_H_

#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "muster/v1/identity_service.pb.h"

namespace muster::broker {

// Any thread may use it. It reads a small file, if there is a network listener.
absl::StatusOr<v1::WhoAmIResponse> WhoAmI(const Principal& principal, const Services& services);
absl::StatusOr<v1::ListTokensResponse> ListTokens(const Principal& principal,
                                                  const Services& services,
                                                  const v1::ListTokensRequest& request);

// Is open to everybody but those whose credential was refused.
absl::StatusOr<v1::GetLoginInfoResponse> GetLoginInfo(const Principal& principal,
                                                      const Services& services);

// These wait for the disk.
absl::StatusOr<v1::CreateTokenResponse> CreateToken(const Principal& principal,
                                                    const Services& services,
                                                    const v1::CreateTokenRequest& request);
absl::StatusOr<v1::RevokeTokenResponse> RevokeToken(const Principal& principal,
                                                    const Services& services,
                                                    const v1::RevokeTokenRequest& request);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_IDENTITY_H_
