// The pidfd system calls; glibc 2.36 declares them without extern "C", so that C++ cannot link its
// wrappers.
#ifndef MUSTER_AGENTS_HOSTS_PIDFD_H_
#define MUSTER_AGENTS_HOSTS_PIDFD_H_

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

namespace muster::hosts {

// Returns a descriptor (with O_CLOEXEC) of the process that has this pid now; -1 and errno if there
// is none.
inline int PidfdOpen(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

// Signals that very process; -1 and errno ESRCH if it is gone, even if another has its pid now.
inline int PidfdSendSignal(int pidfd, int signal) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0));
}

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_PIDFD_H_
