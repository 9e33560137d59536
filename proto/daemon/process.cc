#include "daemon/process.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include "absl/synchronization/mutex.h"

namespace muster {

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void LeaveLocksUnwatched() { absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore); }

void ForbidCoreDumps() {
#ifndef __SANITIZE_ADDRESS__  // its search for leaks looks into the process
  prctl(PR_SET_DUMPABLE, 0);
#endif
}

}  // namespace muster
