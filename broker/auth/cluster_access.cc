#include "broker/auth/cluster_access.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "contract/errors.h"
#include "contract/text.h"
#include "contract/validate.h"
#include "daemon/read_file.h"
#include "digest/sha256.h"
#include "pki/join_token.h"

namespace muster::broker {
namespace {

absl::Status Refused(std::string_view why) {
  return contract::Error(absl::StatusCode::kUnauthenticated, "CERTIFICATE_REFUSED", why);
}

absl::Status Revoked() {
  return Refused(
      "the cluster's certificate was revoked; ask the broker's operator, and enroll again with a "
      "new token (muster clusters invite)");
}

absl::Status NoCa() {
  return contract::Error(
      absl::StatusCode::kFailedPrecondition, "NO_CA",
      "the broker has no CA of its own, so that it gives no certificates: run muster-broker init, "
      "or get the cluster's certificate from the CA in tls.client_ca");
}

std::string Digest(std::string_view token) {
  Sha256 digest;
  digest.Add(token);
  return digest.FinishBytes();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClusterAccess>> ClusterAccess::Open(Options options) {
  std::unique_ptr<ClusterAccess> access(new ClusterAccess(std::move(options)));
  if (absl::Status status = access->Load(); !status.ok()) return status;
  return access;
}

absl::Status ClusterAccess::Load() {
  const absl::Time now = options_.now();
  const CaDirectory ca(options_.files.ca_directory);
  if (ca.Exists()) {
    absl::StatusOr<pki::Identity> loaded = ca.Load();
    if (!loaded.ok()) return loaded.status();
    ca_ = *std::move(loaded);
    // A broker that was stopped for long comes back with a certificate that has expired.
    if (options_.files.certificate.empty()) {
      if (const auto renewed = ca.RenewServer(now); !renewed.ok()) return renewed.status();
    }
  }
  absl::StatusOr<ServerIdentity> server = FindServerIdentity(options_.files, now);
  if (!server.ok()) return server.status();
  server_ = *std::move(server);
  if (absl::Status status = LoadClientCa(); !status.ok()) return status;

  absl::StatusOr<std::unique_ptr<AuthDatabase>> database = AuthDatabase::Open(options_.database);
  if (!database.ok()) return database.status();
  absl::StatusOr<std::vector<GivenCertificate>> given = (*database)->Certificates();
  if (!given.ok()) return given.status();
  absl::StatusOr<std::map<std::string, absl::Time>> revocations = (*database)->Revocations();
  if (!revocations.ok()) return revocations.status();
  const MutexLock disk_lock(disk_mutex_);
  database_ = *std::move(database);
  const MutexLock lock(mutex_);
  for (GivenCertificate& one : *given) given_[one.serial] = std::move(one);
  revocations_ = *std::move(revocations);
  return absl::OkStatus();
}

absl::Status ClusterAccess::LoadClientCa() {
  if (options_.files.client_ca.empty()) return absl::OkStatus();
  absl::StatusOr<std::string> pem = ReadFile(options_.files.client_ca, pki::kMaxPemBytes);
  absl::Status status = pem.ok() ? pki::SplitCertificates(*pem).status() : pem.status();
  if (!status.ok()) {
    return contract::Error(absl::StatusCode::kFailedPrecondition, "NO_IDENTITY",
                           fmt::format("tls.client_ca: {} {}; put the CA's certificate there",
                                       options_.files.client_ca, ToStd(status.message())));
  }
  const MutexLock lock(mutex_);
  if (client_ca_ == *pem) return absl::OkStatus();
  client_ca_ = *std::move(pem);
  remembered_.clear();
  return absl::OkStatus();
}

absl::StatusOr<ClusterPeer> ClusterAccess::Verify(const std::string& pem,
                                                  const std::string& client_ca) const {
  const absl::StatusOr<pki::Certificate> read = pki::ReadCertificate(pem);
  if (!read.ok()) return Refused("the caller's certificate cannot be read; enroll again");
  const absl::Time now = options_.now();
  absl::Status verdict = absl::UnauthenticatedError("no CA is trusted here");
  bool is_own = false;
  if (!ca_.certificate.empty()) {
    verdict = pki::Verify(pem, ca_.certificate, pki::Purpose::kClient, now);
    is_own = verdict.ok();
  }
  if (!verdict.ok() && !client_ca.empty()) {
    const absl::Status other = pki::Verify(pem, client_ca, pki::Purpose::kClient, now);
    if (other.ok() || ca_.certificate.empty()) verdict = other;
  }
  if (!verdict.ok()) {
    return Refused(fmt::format("{}; enroll again with a new token (muster clusters invite)",
                               ToStd(verdict.message())));
  }
  if (!contract::ValidateClusterName(read->cluster).ok())
    return Refused("the certificate names no cluster; it needs one URI muster://cluster/NAME");
  return ClusterPeer{read->cluster, read->serial, read->validity.from, read->validity.until,
                     is_own};
}

absl::StatusOr<ClusterPeer> ClusterAccess::Check(const std::string& pem) const {
  std::string client_ca;
  std::optional<ClusterPeer> known;
  {
    const MutexLock lock(mutex_);
    if (const auto found = remembered_.find(pem); found != remembered_.end()) known = found->second;
    client_ca = client_ca_;
  }
  if (!known) {
    absl::StatusOr<ClusterPeer> verified = Verify(pem, client_ca);
    if (!verified.ok()) return verified.status();
    known = *std::move(verified);
    const MutexLock lock(mutex_);
    if (remembered_.size() >= kMaxRemembered) remembered_.clear();
    if (client_ca == client_ca_) remembered_[pem] = *known;
  }
  if (absl::Status status = CheckAgain(*known); !status.ok()) return status;
  return *std::move(known);
}

absl::Status ClusterAccess::CheckAgain(const ClusterPeer& peer) const {
  if (peer.until <= options_.now()) {
    return Refused(
        "the certificate has expired; connect with the renewed one, or enroll again with "
        "a new token (muster clusters invite)");
  }
  const MutexLock lock(mutex_);
  if (peer.is_own) {
    const auto given = given_.find(peer.serial);
    // A database that was brought back from a copy does not know what was revoked since.
    if (given == given_.end()) {
      return Refused(
          "the broker has not given this certificate, as far as its auth.db knows; "
          "enroll again with a new token (muster clusters invite)");
    }
    return given->second.is_revoked ? Revoked() : absl::OkStatus();
  }
  const auto revoked = revocations_.find(peer.cluster);
  if (revoked != revocations_.end() && peer.from <= revoked->second) return Revoked();
  return absl::OkStatus();
}

absl::StatusOr<std::string> ClusterAccess::Sign(std::string_view request,
                                                const std::string& cluster,
                                                GivenCertificate* given) const {
  if (ca_.key.empty()) return NoCa();
  const absl::Time now = options_.now();
  absl::StatusOr<std::string> certificate = pki::SignRequest(
      ca_, request, cluster, {now - pki::kClockSkew, now + options_.certificate_life});
  if (!certificate.ok()) {
    return contract::BadField("certificate_request",
                              std::string(ToStd(certificate.status().message())));
  }
  const absl::StatusOr<pki::Certificate> read = pki::ReadCertificate(*certificate);
  if (!read.ok()) return read.status();
  *given = {read->serial, cluster, read->validity.until};
  return certificate;
}

absl::StatusOr<Enrolled> ClusterAccess::Enroll(std::string_view token, std::string_view request) {
  const std::string digest = Digest(token);
  const absl::Time now = options_.now();
  const MutexLock disk_lock(disk_mutex_);
  absl::StatusOr<std::string> cluster = database_->FindInvitation(digest, now);
  if (!cluster.ok()) return cluster.status();
  GivenCertificate given;
  absl::StatusOr<std::string> certificate = Sign(request, *cluster, &given);
  if (!certificate.ok()) return certificate.status();
  if (absl::Status status = database_->UseInvitation(digest, given, now); !status.ok())
    return status;
  const MutexLock lock(mutex_);
  given_[given.serial] = given;
  return Enrolled{*std::move(cluster), *std::move(certificate)};
}

absl::StatusOr<std::string> ClusterAccess::Renew(const ClusterPeer& peer,
                                                 std::string_view request) {
  const MutexLock disk_lock(disk_mutex_);
  // A revocation may have come while the call waited for the disk.
  if (absl::Status status = CheckAgain(peer); !status.ok()) return status;
  GivenCertificate given;
  absl::StatusOr<std::string> certificate = Sign(request, peer.cluster, &given);
  if (!certificate.ok()) return certificate.status();
  if (absl::Status status = database_->AddCertificate(given); !status.ok()) return status;
  const MutexLock lock(mutex_);
  given_[given.serial] = given;
  return certificate;
}

absl::StatusOr<Invitation> ClusterAccess::Invite(const std::string& cluster) {
  if (ca_.key.empty()) return NoCa();
  const absl::StatusOr<std::string> fingerprint = ServedCa(server_.certificate);
  if (!fingerprint.ok()) return fingerprint.status();
  const absl::Time now = options_.now();
  Invitation invitation{pki::MakeJoinToken(*fingerprint), now + kInvitationLife};
  const MutexLock disk_lock(disk_mutex_);
  if (absl::Status status =
          database_->AddInvitation(Digest(invitation.token), cluster, invitation.until, now);
      !status.ok())
    return status;
  return invitation;
}

absl::StatusOr<AuthDatabase::Revoked> ClusterAccess::Revoke(const std::string& cluster) {
  const absl::Time now = options_.now();
  const MutexLock disk_lock(disk_mutex_);
  absl::StatusOr<AuthDatabase::Revoked> revoked = database_->Revoke(cluster, now);
  if (!revoked.ok()) return revoked.status();
  const MutexLock lock(mutex_);
  for (auto& [serial, given] : given_) {
    if (given.cluster == cluster) given.is_revoked = true;
  }
  revocations_[cluster] = now;
  return revoked;
}

absl::Status ClusterAccess::Housekeep() {
  absl::Status first = LoadClientCa();
  const absl::Time now = options_.now();
  if (server_.is_own)
    first.Update(CaDirectory(options_.files.ca_directory).RenewServer(now).status());
  const MutexLock disk_lock(disk_mutex_);
  first.Update(database_->Prune(now));
  const MutexLock lock(mutex_);
  absl::erase_if(given_, [&](const auto& entry) { return entry.second.until <= now; });
  absl::erase_if(remembered_, [&](const auto& entry) { return entry.second.until <= now; });
  return first;
}

}  // namespace muster::broker
