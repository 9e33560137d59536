#include "broker/rpc/peer_certificate.h"

#include <grpc/grpc_security_constants.h>

#include <vector>

namespace muster::broker {

bool IsOverTls(const grpc::AuthContext& context) {
  const std::vector<grpc::string_ref> types =
      context.FindPropertyValues(GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME);
  return types.size() == 1 && types[0] == GRPC_TLS_TRANSPORT_SECURITY_TYPE;
}

std::string CertificateOf(const grpc::AuthContext& context) {
  const std::vector<grpc::string_ref> pems =
      context.FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  return pems.size() == 1 ? std::string(pems[0].data(), pems[0].size()) : "";
}

}  // namespace muster::broker
