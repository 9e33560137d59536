// Wakes a thread that waits in poll(2). Any thread may call Wake.
#ifndef MUSTER_AGENTS_CORE_WAKEUP_H_
#define MUSTER_AGENTS_CORE_WAKEUP_H_

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace muster::agents {

class Wakeup {
 public:
  Wakeup() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Wakeup() { ::close(fd_); }
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;

  // It is readable after a Wake, until the next Clear. Several calls count as one.
  int fd() const { return fd_; }
  void Wake() {
    const uint64_t one = 1;
    // It only fails if the counter is full, and then the thread is awake.
    [[maybe_unused]] const ssize_t written = ::write(fd_, &one, sizeof one);
  }
  void Clear() {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t read = ::read(fd_, &count, sizeof count);
  }

 private:
  const int fd_;
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_WAKEUP_H_
