#include "broker/rpc/users.h"

#include <grpcpp/security/auth_context.h>
#include <grpcpp/server_context.h>

#include <charconv>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "broker/rpc/gate.h"
#include "pki/certificates.h"
#include "sync/mutex.h"

namespace muster::broker {

void Users::Note(int fd, std::string user) {
  const MutexLock lock(mutex_);
  by_fd_[fd] = std::move(user);
}

Principal Users::PrincipalOf(const grpc::ServerContextBase& call) const {
  const std::shared_ptr<const grpc::AuthContext> context = call.auth_context();
  if (context == nullptr || !IsOverTls(*context)) return LocalPrincipal(call.peer());
  // The gate has verified it.
  const absl::StatusOr<pki::Certificate> certificate =
      pki::ReadCertificate(CertificateOf(*context));
  if (!certificate.ok()) return {.user = "nobody", .role = Role::kNone};
  return {.user = certificate->cluster, .known_by = KnownBy::kCertificate, .role = Role::kAgent};
}

Principal Users::LocalPrincipal(std::string_view peer) const {
  constexpr std::string_view kPrefix = "fd:";
  if (peer.starts_with(kPrefix)) {
    const std::string_view digits = peer.substr(kPrefix.size());
    int fd = -1;
    std::from_chars(digits.data(), digits.data() + digits.size(), fd);
    const MutexLock lock(mutex_);
    if (const auto found = by_fd_.find(fd); found != by_fd_.end()) {
      return {.user = found->second, .known_by = KnownBy::kSocket};
    }
  }
  return {.user = std::string(kLoopbackUser), .known_by = KnownBy::kNobody};
}

}  // namespace muster::broker
