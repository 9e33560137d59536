// The modes of what only the agent's own user may read.
#ifndef MUSTER_AGENTS_HOSTS_PRIVATE_MODES_H_
#define MUSTER_AGENTS_HOSTS_PRIVATE_MODES_H_

#include <cstdint>

namespace muster::hosts {

inline constexpr uint32_t kPrivateDirectory = 0700;
inline constexpr uint32_t kPrivateFile = 0600;

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_PRIVATE_MODES_H_
