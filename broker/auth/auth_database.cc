#include "broker/auth/auth_database.h"

#include <fmt/format.h>

#include "contract/errors.h"

namespace muster::broker {
namespace {

constexpr int64_t kVersion = 1;
// Used and expired invitations are kept so long: whoever tries one again is told what happened to
// it.
constexpr absl::Duration kInvitationMemory = absl::Hours(24 * 7);

constexpr DatabaseRemedies kRemedies = {
    .full = "make room on the broker's disk",
    .damaged = "bring the file back from a copy; without it every agent must enroll again",
    .disk_error = "look at the disk",
    .not_writable = "let the broker's user write it"};

constexpr char kSchema[] = R"(
CREATE TABLE invitation (
  digest BLOB PRIMARY KEY,
  cluster TEXT NOT NULL,
  until INTEGER NOT NULL,
  used_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE certificate (
  serial TEXT PRIMARY KEY,
  cluster TEXT NOT NULL,
  until INTEGER NOT NULL,
  is_revoked INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE revocation (
  cluster TEXT PRIMARY KEY,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
PRAGMA user_version = 1;
)";

absl::Status Refused(std::string_view reason, std::string_view message) {
  return contract::Error(absl::StatusCode::kUnauthenticated, reason, message);
}

}  // namespace

absl::StatusOr<std::unique_ptr<AuthDatabase>> AuthDatabase::Open(const std::string& path) {
  auto database = Database::OpenWithTables(path, kSchema, kVersion, kRemedies);
  if (!database.ok()) return database.status();
  return std::unique_ptr<AuthDatabase>(new AuthDatabase(*std::move(database)));
}

absl::StatusOr<std::vector<GivenCertificate>> AuthDatabase::Certificates() const {
  absl::StatusOr<Statement> rows =
      database_->Prepare("SELECT serial, cluster, until, is_revoked FROM certificate");
  if (!rows.ok()) return rows.status();
  std::vector<GivenCertificate> all;
  rows->Start();
  while (true) {
    const absl::StatusOr<bool> row = rows->Step();
    if (!row.ok()) return row.status();
    if (!*row) return all;
    all.push_back({std::string(rows->Text(0)), std::string(rows->Text(1)),
                   absl::FromUnixSeconds(rows->Int(2)), rows->Int(3) != 0});
  }
}

absl::StatusOr<std::map<std::string, absl::Time>> AuthDatabase::Revocations() const {
  absl::StatusOr<Statement> rows = database_->Prepare("SELECT cluster, at FROM revocation");
  if (!rows.ok()) return rows.status();
  std::map<std::string, absl::Time> all;
  rows->Start();
  while (true) {
    const absl::StatusOr<bool> row = rows->Step();
    if (!row.ok()) return row.status();
    if (!*row) return all;
    all[std::string(rows->Text(0))] = absl::FromUnixSeconds(rows->Int(1));
  }
}

absl::Status AuthDatabase::AddInvitation(std::string_view digest, std::string_view cluster,
                                         absl::Time until, absl::Time now) {
  absl::StatusOr<Statement> count =
      database_->Prepare("SELECT COUNT(*) FROM invitation WHERE used_at IS NULL AND until > ?");
  if (!count.ok()) return count.status();
  const absl::StatusOr<bool> row = count->Start().Bind(absl::ToUnixSeconds(now)).Step();
  if (!row.ok()) return row.status();
  const int64_t open = count->Int(0);
  count->Reset();
  if (open >= kMaxOpenInvitations) {
    return contract::Error(absl::StatusCode::kResourceExhausted, "TOO_MANY_INVITATIONS",
                           fmt::format("{} invitations are open; wait until some have expired, or "
                                       "revoke clusters that were invited by mistake",
                                       open));
  }
  absl::StatusOr<Statement> insert =
      database_->Prepare("INSERT INTO invitation (digest, cluster, until) VALUES (?, ?, ?)");
  if (!insert.ok()) return insert.status();
  return insert->Start().BindBlob(digest).Bind(cluster).Bind(absl::ToUnixSeconds(until)).Run();
}

absl::StatusOr<std::string> AuthDatabase::FindInvitation(std::string_view digest,
                                                         absl::Time now) const {
  absl::StatusOr<Statement> found =
      database_->Prepare("SELECT cluster, until, used_at FROM invitation WHERE digest = ?");
  if (!found.ok()) return found.status();
  const absl::StatusOr<bool> row = found->Start().BindBlob(digest).Step();
  if (!row.ok()) return row.status();
  if (!*row) {
    return Refused("INVITE_UNKNOWN",
                   "the broker does not know this token: it is of another broker, or was revoked; "
                   "make a new one with muster clusters invite");
  }
  const std::string cluster(found->Text(0));
  const bool is_used = !found->IsNull(2);
  const bool is_expired = absl::FromUnixSeconds(found->Int(1)) <= now;
  found->Reset();
  if (is_used) {
    return Refused("INVITE_USED",
                   "this token was used already; if it was not you, revoke the cluster with muster "
                   "clusters revoke; make a new one with muster clusters invite");
  }
  if (is_expired) {
    return Refused("INVITE_EXPIRED",
                   "this token has expired; make a new one with muster clusters invite");
  }
  return cluster;
}

absl::Status AuthDatabase::UseInvitation(std::string_view digest,
                                         const GivenCertificate& certificate, absl::Time now) {
  return database_->InTransaction([&]() -> absl::Status {
    absl::StatusOr<Statement> use =
        database_->Prepare("UPDATE invitation SET used_at = ? WHERE digest = ?");
    if (!use.ok()) return use.status();
    if (absl::Status status = use->Start().Bind(absl::ToUnixSeconds(now)).BindBlob(digest).Run();
        !status.ok())
      return status;
    return AddCertificate(certificate);
  });
}

absl::Status AuthDatabase::AddCertificate(const GivenCertificate& certificate) {
  absl::StatusOr<Statement> insert = database_->Prepare(
      "INSERT INTO certificate (serial, cluster, until, is_revoked) VALUES (?, ?, ?, 0)");
  if (!insert.ok()) return insert.status();
  return insert->Start()
      .Bind(certificate.serial)
      .Bind(certificate.cluster)
      .Bind(absl::ToUnixSeconds(certificate.until))
      .Run();
}

absl::StatusOr<AuthDatabase::Revoked> AuthDatabase::Revoke(std::string_view cluster,
                                                           absl::Time now) {
  Revoked revoked;
  const int64_t seconds = absl::ToUnixSeconds(now);
  const absl::Status done = database_->InTransaction([&]() -> absl::Status {
    absl::StatusOr<Statement> certificates = database_->Prepare(
        "UPDATE certificate SET is_revoked = 1 WHERE cluster = ? AND until > ? AND is_revoked = 0");
    if (!certificates.ok()) return certificates.status();
    if (absl::Status status = certificates->Start().Bind(cluster).Bind(seconds).Run(); !status.ok())
      return status;
    const absl::StatusOr<int64_t> certificate_count = database_->QueryInt("SELECT changes()");
    if (!certificate_count.ok()) return certificate_count.status();
    absl::StatusOr<Statement> invitations = database_->Prepare(
        "DELETE FROM invitation WHERE cluster = ? AND until > ? AND used_at IS NULL");
    if (!invitations.ok()) return invitations.status();
    if (absl::Status status = invitations->Start().Bind(cluster).Bind(seconds).Run(); !status.ok())
      return status;
    const absl::StatusOr<int64_t> invitation_count = database_->QueryInt("SELECT changes()");
    if (!invitation_count.ok()) return invitation_count.status();
    revoked = {static_cast<int>(*certificate_count), static_cast<int>(*invitation_count)};
    absl::StatusOr<Statement> note = database_->Prepare(
        "INSERT INTO revocation (cluster, at) VALUES (?, ?) "
        "ON CONFLICT (cluster) DO UPDATE SET at = excluded.at");
    if (!note.ok()) return note.status();
    return note->Start().Bind(cluster).Bind(seconds).Run();
  });
  if (!done.ok()) return done;
  return revoked;
}

absl::Status AuthDatabase::Prune(absl::Time now) {
  return database_->InTransaction([&]() -> absl::Status {
    absl::StatusOr<Statement> certificates =
        database_->Prepare("DELETE FROM certificate WHERE until <= ?");
    if (!certificates.ok()) return certificates.status();
    if (absl::Status status = certificates->Start().Bind(absl::ToUnixSeconds(now)).Run();
        !status.ok())
      return status;
    absl::StatusOr<Statement> invitations =
        database_->Prepare("DELETE FROM invitation WHERE until <= ?");
    if (!invitations.ok()) return invitations.status();
    return invitations->Start().Bind(absl::ToUnixSeconds(now - kInvitationMemory)).Run();
  });
}

}  // namespace muster::broker
