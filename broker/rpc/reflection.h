// Serves version v1 of gRPC's reflection service, beside the v1alpha that Debian's gRPC brings:
// current clients (grpcurl, Postman) ask for v1 first.
#ifndef MUSTER_BROKER_RPC_REFLECTION_H_
#define MUSTER_BROKER_RPC_REFLECTION_H_

#include <memory>
#include <string>
#include <vector>

namespace grpc {
class Service;
}  // namespace grpc

namespace muster::broker {

// `services` are the full names that it lists.
std::unique_ptr<grpc::Service> MakeReflectionService(std::vector<std::string> services);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_REFLECTION_H_
