#include "broker/rpc/users.h"

#include <charconv>
#include <utility>

#include "sync/mutex.h"

namespace muster::broker {

void Users::Note(int fd, std::string user) {
  const MutexLock lock(mutex_);
  by_fd_[fd] = std::move(user);
}

Principal Users::PrincipalOf(std::string_view peer) const {
  constexpr std::string_view kPrefix = "fd:";
  if (peer.starts_with(kPrefix)) {
    const std::string_view digits = peer.substr(kPrefix.size());
    int fd = -1;
    std::from_chars(digits.data(), digits.data() + digits.size(), fd);
    const MutexLock lock(mutex_);
    if (const auto found = by_fd_.find(fd); found != by_fd_.end()) {
      return {.user = found->second, .known_by = KnownBy::kSocket};
    }
  }
  return {.user = std::string(kLoopbackUser), .known_by = KnownBy::kNobody};
}

}  // namespace muster::broker
