#ifndef MUSTER_PROTO_DAEMON_PROCESS_H_
#define MUSTER_PROTO_DAEMON_PROCESS_H_

namespace muster {

// Connections, logs and pipes are descriptors, and 1024, the usual soft limit, is few: raises it to
// the hard one.
void RaiseDescriptorLimit();

}  // namespace muster

#endif  // MUSTER_PROTO_DAEMON_PROCESS_H_
