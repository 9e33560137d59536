// A file descriptor with an owner.
#ifndef MUSTER_AGENTS_HOSTS_FD_H_
#define MUSTER_AGENTS_HOSTS_FD_H_

#include <unistd.h>

#include <utility>

namespace muster::hosts {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Fd() { Close(); }

  bool valid() const { return fd_ >= 0; }
  int get() const { return fd_; }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_FD_H_
