#include "broker/auth/ca_directory.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "contract/errors.h"
#include "contract/text.h"
#include "daemon/read_file.h"
#include "daemon/write_file.h"

namespace muster::broker {
namespace {

constexpr mode_t kSecret = 0600;
constexpr mode_t kPublic = 0644;

absl::Status Damaged(const std::string& path, const absl::Status& status) {
  return contract::Error(
      absl::StatusCode::kFailedPrecondition, "CA_DAMAGED",
      fmt::format("{}: {}; bring it back from a copy, or move the directory away and run "
                  "muster-broker init, after which every agent must enroll again",
                  path, ToStd(status.message())));
}

}  // namespace

bool CaDirectory::Exists() const {
  return access(certificate().c_str(), F_OK) == 0 || access(key().c_str(), F_OK) == 0;
}

absl::Status CaDirectory::Init(const std::vector<std::string>& names, absl::Time now) const {
  if (Exists()) {
    return contract::Error(
        absl::StatusCode::kAlreadyExists, "CA_EXISTS",
        fmt::format("{} has a CA already, by which agents know this broker; to begin anew, move "
                    "that directory away, and let every agent enroll again",
                    path_));
  }
  const pki::Identity ca = pki::MakeCa("Muster broker CA", {now - pki::kClockSkew, now + kCaLife});
  const std::string server_key_pem = pki::MakeKey();
  const absl::StatusOr<std::string> server = pki::MakeServerCertificate(
      ca, server_key_pem, names, {now - pki::kClockSkew, now + kServerLife});
  if (!server.ok()) return server.status();
  if (mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST)
    return absl::ErrnoToStatus(errno, ToAbsl(fmt::format("cannot make {}", path_)));
  // The CA's certificate comes last: a directory without it counts as unfinished only if its key is
  // missing, too.
  const std::pair<std::string, std::pair<std::string_view, mode_t>> files[] = {
      {server_key(), {server_key_pem, kSecret}},
      {server_certificate(), {*server, kPublic}},
      {key(), {ca.key, kSecret}},
      {certificate(), {ca.certificate, kPublic}}};
  for (const auto& [path, content] : files) {
    if (absl::Status status = WriteFileWhole(path, content.first, content.second); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<pki::Identity> CaDirectory::Load() const {
  absl::StatusOr<std::string> key_pem = ReadFile(key(), pki::kMaxPemBytes);
  if (!key_pem.ok()) return Damaged(key(), key_pem.status());
  absl::StatusOr<std::string> certificate_pem = ReadFile(certificate(), pki::kMaxPemBytes);
  if (!certificate_pem.ok()) return Damaged(certificate(), certificate_pem.status());
  pki::Identity ca{*std::move(key_pem), *std::move(certificate_pem)};
  if (absl::Status status = pki::CheckPair(ca); !status.ok()) return Damaged(path_, status);
  return ca;
}

absl::StatusOr<bool> CaDirectory::RenewServer(absl::Time now) const {
  const absl::StatusOr<pki::Identity> ca = Load();
  if (!ca.ok()) return ca.status();
  const absl::StatusOr<std::string> old = ReadFile(server_certificate(), pki::kMaxPemBytes);
  if (!old.ok()) return Damaged(server_certificate(), old.status());
  const absl::StatusOr<pki::Certificate> read = pki::ReadCertificate(*old);
  if (!read.ok()) return Damaged(server_certificate(), read.status());
  if (read->validity.until - now > kServerLife / 3) return false;
  const absl::StatusOr<std::string> key_pem = ReadFile(server_key(), pki::kMaxPemBytes);
  if (!key_pem.ok()) return Damaged(server_key(), key_pem.status());
  const absl::StatusOr<std::vector<std::string>> names = pki::ServerNames(*old);
  if (!names.ok()) return names.status();
  const absl::StatusOr<std::string> made =
      pki::MakeServerCertificate(*ca, *key_pem, *names, {now - pki::kClockSkew, now + kServerLife});
  if (!made.ok()) return made.status();
  if (absl::Status status = WriteFileWhole(server_certificate(), *made, kPublic); !status.ok())
    return status;
  return true;
}

}  // namespace muster::broker
