// Any call of any service, by its name.
#ifndef MUSTER_TESTS_UNIT_RPC_ANY_CALL_H_
#define MUSTER_TESTS_UNIT_RPC_ANY_CALL_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

namespace muster::broker {

// Makes a call with an empty request, and returns how it ended. `method`: "/SERVICE/METHOD";
// `token`: empty, none.
grpc::Status CallAny(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                     const std::string& token);

}  // namespace muster::broker

#endif  // MUSTER_TESTS_UNIT_RPC_ANY_CALL_H_
