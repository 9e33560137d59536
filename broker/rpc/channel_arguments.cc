#include "broker/rpc/channel_arguments.h"

#include <grpc/grpc.h>
#include <grpcpp/server_builder.h>

namespace muster::broker {

void SetChannelArguments(grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // A connection that is not a caller's by then is closed: some hundred times the way around the
  // world.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10'000);
  // A token and a few names; more is refused before it is kept.
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 8 << 10);
  // Calls and streams of one connection; a client keeps more to itself until others have ended.
  // Half of max_streams by default, so that no connection takes all.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 5'000);
  // Agents ping every 30 s.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 15'000);
  // A second broker on the port must fail, not share it.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // These records of each connection and call are not used, and cost both memory and time.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 0);
  // The broker never compresses its messages; clients may.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
}

}  // namespace muster::broker
