// Ends the connections of a server that stops, below gRPC.
//
// gRPC answers calls that reach a server which shuts down with CANCELLED, which says that the
// client gave up and is not repeated. The calls of a connection that breaks end as UNAVAILABLE
// instead, which every client's retry policy knows.
#ifndef MUSTER_BROKER_RPC_CUT_CONNECTIONS_H_
#define MUSTER_BROKER_RPC_CUT_CONNECTIONS_H_

#include <initializer_list>
#include <string_view>

namespace muster::broker {

// Cuts the connections that this process has accepted on the Unix socket of that path, and on those
// TCP ports (0: none). Bytes that were written still reach the clients. The descriptors stay open
// for their owners.
void CutConnections(std::string_view socket_path, std::initializer_list<int> ports);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_CUT_CONNECTIONS_H_
