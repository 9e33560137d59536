#include "broker/rpc/caller.h"

#include <grpcpp/server_context.h>

#include <string_view>
#include <vector>

#include "broker/rpc/users.h"
#include "contract/errors.h"

namespace muster::broker {
namespace {

// gRPC gives the keys of metadata in lower case.
constexpr char kHeader[] = "authorization";

}  // namespace

Principal CallerOf(const Users& users, const grpc::CallbackServerContext& call) {
  std::vector<std::string_view> credentials;
  const auto [begin, end] = call.client_metadata().equal_range(kHeader);
  for (auto header = begin; header != end; ++header) {
    credentials.emplace_back(header->second.data(), header->second.size());
  }
  return users.PrincipalOf(call.peer(), credentials);
}

absl::Status CheckAgentCall(const grpc::CallbackServerContext& call) {
  if (call.client_metadata().find(kHeader) == call.client_metadata().end()) {
    return absl::OkStatus();
  }
  return contract::Error(absl::StatusCode::kPermissionDenied, "TOKEN_NOT_FOR_AGENTS",
                         "tokens are for people, and nobody speaks as an agent with one; connect "
                         "without \"authorization\"");
}

}  // namespace muster::broker
