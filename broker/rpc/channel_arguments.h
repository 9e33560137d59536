// The behaviour of the gRPC server's connections: keepalive, and the bounds of each of them.
#ifndef MUSTER_BROKER_RPC_CHANNEL_ARGUMENTS_H_
#define MUSTER_BROKER_RPC_CHANNEL_ARGUMENTS_H_

namespace grpc {
class ServerBuilder;
}

namespace muster::broker {

void SetChannelArguments(grpc::ServerBuilder& builder);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_CHANNEL_ARGUMENTS_H_
