// Keeps STATE/auth.db: invitations and the certificates that the broker has given to clusters. It
// is a file of its own, because it must answer while the store of jobs is busy, and is small.
//
// One thread at a time may use it. Every change is on disk when its call returns OK.
#ifndef MUSTER_BROKER_AUTH_AUTH_DATABASE_H_
#define MUSTER_BROKER_AUTH_AUTH_DATABASE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/sqlite.h"

namespace muster::broker {

// A certificate that the broker has given out and that has not expired.
struct GivenCertificate {
  std::string serial;
  std::string cluster;
  absl::Time until;
  bool is_revoked = false;
};

class AuthDatabase {
 public:
  // Each takes some 200 bytes on disk. An administrator with so many open ones has lost count.
  static constexpr int64_t kMaxOpenInvitations = 1000;

  // FAILED_PRECONDITION: the file is of a newer version.
  static absl::StatusOr<std::unique_ptr<AuthDatabase>> Open(const std::string& path);

  absl::StatusOr<std::vector<GivenCertificate>> Certificates() const;
  // Returns the time of the last revocation of each cluster that had one.
  absl::StatusOr<std::map<std::string, absl::Time>> Revocations() const;

  // `digest` names the token. RESOURCE_EXHAUSTED, TOO_MANY_INVITATIONS: so many are open.
  absl::Status AddInvitation(std::string_view digest, std::string_view cluster, absl::Time until,
                             absl::Time now);
  // Returns the cluster of an open invitation. UNAUTHENTICATED: INVITE_UNKNOWN, INVITE_USED,
  // INVITE_EXPIRED.
  absl::StatusOr<std::string> FindInvitation(std::string_view digest, absl::Time now) const;
  // Uses up the invitation for this certificate, or does neither.
  absl::Status UseInvitation(std::string_view digest, const GivenCertificate& certificate,
                             absl::Time now);
  absl::Status AddCertificate(const GivenCertificate& certificate);

  struct Revoked {
    int certificates = 0;
    int invitations = 0;
  };
  absl::StatusOr<Revoked> Revoke(std::string_view cluster, absl::Time now);

  // Deletes what has expired some time ago.
  absl::Status Prune(absl::Time now);

 private:
  explicit AuthDatabase(std::unique_ptr<Database> database) : database_(std::move(database)) {}

  const std::unique_ptr<Database> database_;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_AUTH_AUTH_DATABASE_H_
