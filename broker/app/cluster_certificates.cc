#include "broker/app/cluster_certificates.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "broker/app/rights.h"
#include "contract/errors.h"
#include "contract/text.h"
#include "contract/validate.h"
#include "daemon/log.h"

namespace muster::broker {
namespace {

absl::Status NoListener() {
  return contract::Error(
      absl::StatusCode::kFailedPrecondition, "NO_TLS_LISTENER",
      "the broker has no network listener: run muster-broker init, set tls.listen and start it "
      "again");
}

// Names the field as the request has it.
absl::Status CheckName(const std::string& name) {
  if (contract::ValidateClusterName(name).ok()) return absl::OkStatus();
  return contract::BadField("name", fmt::format("\"{}\" is not a cluster's name; use 1 to 63 of "
                                                "a-z, 0-9 and '-', with a letter or digit at both "
                                                "ends",
                                                name.substr(0, 100)));
}

}  // namespace

absl::StatusOr<v1::InviteClusterResponse> InviteCluster(const Principal& principal,
                                                        const Services& services,
                                                        const v1::InviteClusterRequest& request) {
  if (auto scope = Authorize(principal, UseCase::kAdmitClusters); !scope.ok())
    return scope.status();
  if (services.cluster_access == nullptr) return NoListener();
  if (absl::Status status = CheckName(request.name()); !status.ok()) return status;
  const absl::StatusOr<Invitation> invitation = services.cluster_access->Invite(request.name());
  if (!invitation.ok()) return invitation.status();
  LogEvent(spdlog::level::info, "cluster_invited",
           {{"cluster", request.name()}, {"user", principal.user}});
  v1::InviteClusterResponse response;
  response.set_token(invitation->token);
  response.mutable_expire_time()->set_seconds(absl::ToUnixSeconds(invitation->until));
  response.set_address(services.tls_address());
  return response;
}

absl::StatusOr<v1::RevokeClusterResponse> RevokeCluster(const Principal& principal,
                                                        const Services& services,
                                                        const v1::RevokeClusterRequest& request) {
  if (auto scope = Authorize(principal, UseCase::kAdmitClusters); !scope.ok())
    return scope.status();
  if (services.cluster_access == nullptr) return NoListener();
  if (absl::Status status = CheckName(request.name()); !status.ok()) return status;
  const absl::StatusOr<AuthDatabase::Revoked> revoked =
      services.cluster_access->Revoke(request.name());
  if (!revoked.ok()) return revoked.status();
  LogEvent(spdlog::level::warn, "cluster_revoked",
           {{"cluster", request.name()},
            {"user", principal.user},
            {"certificates", fmt::format("{}", revoked->certificates)},
            {"invitations", fmt::format("{}", revoked->invitations)}});
  v1::RevokeClusterResponse response;
  response.set_certificates(revoked->certificates);
  response.set_invitations(revoked->invitations);
  return response;
}

absl::StatusOr<agent::v1::EnrollResponse> Enroll(const Services& services,
                                                 const agent::v1::EnrollRequest& request) {
  if (services.cluster_access == nullptr) return NoListener();
  absl::StatusOr<Enrolled> enrolled =
      services.cluster_access->Enroll(request.token(), request.certificate_request());
  if (!enrolled.ok()) {
    LogEvent(spdlog::level::warn, "enrollment_refused",
             {{"why", std::string(ToStd(enrolled.status().message()))}});
    return enrolled.status();
  }
  LogEvent(spdlog::level::info, "cluster_enrolled", {{"cluster", enrolled->cluster}});
  agent::v1::EnrollResponse response;
  response.set_cluster(std::move(enrolled->cluster));
  response.set_certificate(std::move(enrolled->certificate));
  return response;
}

absl::StatusOr<agent::v1::RenewResponse> Renew(const std::optional<ClusterPeer>& peer,
                                               const Services& services,
                                               const agent::v1::RenewRequest& request) {
  if (services.cluster_access == nullptr) return NoListener();
  if (!peer) {
    return contract::Error(absl::StatusCode::kUnauthenticated, "NO_CREDENTIAL",
                           "only an agent that comes with a certificate can renew it");
  }
  absl::StatusOr<std::string> certificate =
      services.cluster_access->Renew(*peer, request.certificate_request());
  if (!certificate.ok()) return certificate.status();
  LogEvent(spdlog::level::info, "certificate_renewed",
           {{"cluster", peer->cluster}, {"former", peer->serial}});
  agent::v1::RenewResponse response;
  response.set_certificate(*std::move(certificate));
  return response;
}

}  // namespace muster::broker
