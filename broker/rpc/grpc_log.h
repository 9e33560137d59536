// Brings gRPC's own messages into the broker's log, a bounded number of them: each stranger who
// connects to the network listener and does not speak TLS makes gRPC write a line.
#ifndef MUSTER_BROKER_RPC_GRPC_LOG_H_
#define MUSTER_BROKER_RPC_GRPC_LOG_H_

namespace muster::broker {

// Call it once, after StartLogging. Messages may come from any thread.
void LogGrpcMessages();

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_GRPC_LOG_H_
