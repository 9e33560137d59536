#include "broker/rpc/tls_listener.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include "broker/rpc/gate.h"

namespace muster::broker {
namespace {

// The files are looked at so often.
constexpr unsigned int kRefreshSeconds = 1;

}  // namespace

std::shared_ptr<grpc::ServerCredentials> TlsListenerCredentials(const ClusterAccess* access,
                                                                const Users* users,
                                                                CallAudit* audit) {
  const ServerIdentity& identity = access->server();
  grpc::experimental::TlsServerCredentialsOptions options(
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          identity.key, identity.certificate, kRefreshSeconds));
  // Without it the process aborts at the first handshake.
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
  std::shared_ptr<grpc::ServerCredentials> credentials =
      grpc::experimental::TlsServerCredentials(options);
  credentials->SetAuthMetadataProcessor(std::make_shared<Gate>(access, users, audit));
  return credentials;
}

}  // namespace muster::broker
