#ifndef MUSTER_PROTO_DAEMON_PROCESS_H_
#define MUSTER_PROTO_DAEMON_PROCESS_H_

namespace muster {

// Connections, logs and pipes are descriptors, and 1024, the usual soft limit, is few: raises it to
// the hard one.
void RaiseDescriptorLimit();

// Turns off abseil's search for deadlocks, with which Debian builds it and which enters each lock
// of gRPC's into a graph. Call it before the first lock.
void LeaveLocksUnwatched();

// Lets the kernel write no image of this process's memory, and lets no other process of its user
// look into it. The programs that it starts are not concerned.
void ForbidCoreDumps();

}  // namespace muster

#endif  // MUSTER_PROTO_DAEMON_PROCESS_H_
