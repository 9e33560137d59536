// Names a signal as reports of a run's end do.
#ifndef MUSTER_PROTO_CONTRACT_SIGNAL_NAME_H_
#define MUSTER_PROTO_CONTRACT_SIGNAL_NAME_H_

#include <cstring>
#include <string>

#include "fmt/format.h"

namespace muster::contract {

// Returns "signal 9 (SIGKILL)"
inline std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal)
                         : fmt::format("signal {} (SIG{})", signal, name);
}

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_SIGNAL_NAME_H_
