#include "agents/core/identity.h"

#include <fmt/format.h>
#include <grpcpp/security/credentials.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "contract/text.h"
#include "daemon/read_file.h"
#include "daemon/write_file.h"

namespace muster::agents {
namespace {

constexpr mode_t kSecret = 0600;

std::string OwnFile(const std::string& directory) { return directory + "/identity.pem"; }
std::string CaFile(const std::string& directory) { return directory + "/ca.pem"; }

absl::Status Unusable(const std::string& path, const absl::Status& status) {
  return absl::FailedPreconditionError(
      ToAbsl(fmt::format("{}: {}; get a certificate with muster-agent enroll and a token of muster "
                         "clusters invite",
                         path, ToStd(status.message()))));
}

}  // namespace

absl::StatusOr<Identity> ReadIdentity(const std::string& directory) {
  absl::StatusOr<std::string> own = ReadFile(OwnFile(directory), pki::kMaxPemBytes);
  if (!own.ok()) return Unusable(OwnFile(directory), own.status());
  if (absl::Status status = pki::CheckPair({*own, *own}); !status.ok())
    return Unusable(OwnFile(directory), status);
  absl::StatusOr<std::string> ca = ReadFile(CaFile(directory), pki::kMaxPemBytes);
  if (ca.ok()) {
    if (absl::Status status = pki::SplitCertificates(*ca).status(); !status.ok()) ca = status;
  }
  if (!ca.ok()) return Unusable(CaFile(directory), ca.status());
  const size_t certificate = own->find("-----BEGIN CERTIFICATE-----");
  return Identity{{own->substr(0, certificate), own->substr(certificate)}, *std::move(ca)};
}

absl::Status WriteIdentity(const std::string& directory, const Identity& identity) {
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    return absl::ErrnoToStatus(errno, ToAbsl(fmt::format("cannot make {}", directory)));
  if (absl::Status status = WriteFileWhole(CaFile(directory), identity.ca, kSecret); !status.ok())
    return status;
  return WriteFileWhole(OwnFile(directory), identity.own.key + identity.own.certificate, kSecret);
}

absl::Status CheckIdentity(const Identity& identity, const std::string& cluster, absl::Time now) {
  const absl::StatusOr<pki::Certificate> read = pki::ReadCertificate(identity.own.certificate);
  if (!read.ok()) return read.status();
  if (read->cluster != cluster) {
    return absl::FailedPreconditionError(ToAbsl(
        fmt::format("the agent's certificate is of the cluster \"{}\", and its setting cluster is "
                    "\"{}\"; set that to the former, or enroll with a token for the latter",
                    read->cluster, cluster)));
  }
  if (read->validity.until > now) return absl::OkStatus();
  return absl::FailedPreconditionError(ToAbsl(fmt::format(
      "the agent's certificate has expired on {}; enroll again with a new token of muster clusters "
      "invite {}",
      absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", read->validity.until, absl::UTCTimeZone()),
      cluster)));
}

std::shared_ptr<grpc::ChannelCredentials> CredentialsFor(const BrokerEnd& broker) {
  if (broker.tls_directory.empty()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  const absl::StatusOr<Identity> identity = ReadIdentity(broker.tls_directory);
  // Without its files the agent trusts nobody: an empty CA would mean all CAs of the system.
  options.pem_root_certs = identity.ok() ? identity->ca : "unreadable";
  if (identity.ok()) {
    options.pem_private_key = identity->own.key;
    options.pem_cert_chain = identity->own.certificate;
  }
  return grpc::SslCredentials(options);
}

}  // namespace muster::agents
