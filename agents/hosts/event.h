// Wakes a thread that waits in poll(2). Any thread may call Set.
#ifndef MUSTER_AGENTS_HOSTS_EVENT_H_
#define MUSTER_AGENTS_HOSTS_EVENT_H_

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "agents/hosts/fd.h"

namespace muster::hosts {

class Event {
 public:
  Event() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  // Is readable from a Set on until the next Clear. Several calls count as one.
  int fd() const { return fd_.get(); }
  void Set() {
    const uint64_t one = 1;
    // It only fails if the counter is full, and then the event is set.
    [[maybe_unused]] const ssize_t written = write(fd_.get(), &one, sizeof one);
  }
  void Clear() {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(fd_.get(), &count, sizeof count);
  }

 private:
  const Fd fd_;
};

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_EVENT_H_
