// Decides which cluster a certificate speaks for, and gives certificates out.
//
// Any thread may use it. Check and CheckAgain compute and wait for no disk, so that gRPC's threads
// may call them; all others wait for the disk.
#ifndef MUSTER_BROKER_AUTH_CLUSTER_ACCESS_H_
#define MUSTER_BROKER_AUTH_CLUSTER_ACCESS_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/auth/auth_database.h"
#include "broker/auth/server_identity.h"
#include "pki/certificates.h"
#include "sync/mutex.h"

namespace muster::broker {

// The caller by its certificate.
struct ClusterPeer {
  std::string cluster;
  std::string serial;
  absl::Time from;
  absl::Time until;
  bool is_own = false;  // the broker has signed it
};

struct Invitation {
  std::string token;
  absl::Time until;
};

struct Enrolled {
  std::string cluster;
  std::string certificate;
};

class ClusterAccess {
 public:
  static constexpr absl::Duration kInvitationLife = absl::Hours(1);

  struct Options {
    IdentityFiles files;
    std::string database;  // the file
    absl::Duration certificate_life = absl::Hours(24);
    std::function<absl::Time()> now;
  };

  // FAILED_PRECONDITION: there is no identity to serve (NO_IDENTITY), or the CA cannot be read.
  static absl::StatusOr<std::unique_ptr<ClusterAccess>> Open(Options options);

  const ServerIdentity& server() const { return server_; }

  // ---- agents

  // Returns the cluster of a caller's certificate; the caller has shown its key. UNAUTHENTICATED,
  // CERTIFICATE_REFUSED: it is not trusted, has expired, was revoked, or names no cluster.
  absl::StatusOr<ClusterPeer> Check(const std::string& pem) const;
  // Checks the same for a caller that was checked when its stream began.
  absl::Status CheckAgain(const ClusterPeer& peer) const;

  absl::StatusOr<Enrolled> Enroll(std::string_view token, std::string_view request);
  absl::StatusOr<std::string> Renew(const ClusterPeer& peer, std::string_view request);

  // ---- owners

  absl::StatusOr<Invitation> Invite(const std::string& cluster);
  absl::StatusOr<AuthDatabase::Revoked> Revoke(const std::string& cluster);

  // ---- housekeeping

  // Renews the broker's own certificate in time, reads tls.client_ca anew, forgets what has
  // expired. Returns the first error; the rest is done all the same.
  absl::Status Housekeep();

 private:
  // At most this many verified certificates are remembered, a few for each agent.
  static constexpr size_t kMaxRemembered = 20'000;

  explicit ClusterAccess(Options options) : options_(std::move(options)) {}

  absl::Status Load();
  absl::Status LoadClientCa();
  absl::StatusOr<std::string> Sign(std::string_view request, const std::string& cluster,
                                   GivenCertificate* given) const;
  absl::StatusOr<ClusterPeer> Verify(const std::string& pem, const std::string& client_ca) const;

  const Options options_;
  ServerIdentity server_;
  pki::Identity ca_;  // empty: clusters get their certificates elsewhere

  Mutex disk_mutex_;  // taken before mutex_
  std::unique_ptr<AuthDatabase> database_ ABSL_GUARDED_BY(disk_mutex_);

  mutable Mutex mutex_;
  std::string client_ca_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, GivenCertificate> given_ ABSL_GUARDED_BY(mutex_);  // by serial
  std::map<std::string, absl::Time> revocations_ ABSL_GUARDED_BY(mutex_);             // by cluster
  // Verified certificates as PEM, so that each is verified once.
  mutable absl::flat_hash_map<std::string, ClusterPeer> remembered_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_AUTH_CLUSTER_ACCESS_H_
