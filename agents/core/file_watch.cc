#include "agents/core/file_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <cstring>

namespace muster::agents {

FileWatch::FileWatch() : fd_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}

FileWatch::~FileWatch() {
  if (fd_ >= 0) ::close(fd_);
}

int FileWatch::Add(const std::string& path) {
  if (fd_ < 0) return -1;
  return ::inotify_add_watch(fd_, path.c_str(), IN_MODIFY | IN_DONT_FOLLOW);
}

void FileWatch::Remove(int watch) {
  if (watch >= 0) ::inotify_rm_watch(fd_, watch);
}

void FileWatch::Read(const std::function<void(int watch)>& grown) {
  alignas(inotify_event) char buffer[4096];
  while (true) {
    const ssize_t count = ::read(fd_, buffer, sizeof buffer);
    if (count <= 0) return;
    for (ssize_t at = 0; at < count;) {
      inotify_event event;
      std::memcpy(&event, buffer + at, sizeof event);
      at += static_cast<ssize_t>(sizeof event + event.len);
      if ((event.mask & IN_MODIFY) != 0) grown(event.wd);
    }
  }
}

}  // namespace muster::agents
