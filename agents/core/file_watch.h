// Says when one of several files grows, so that its reader need not poll: inotify.
//
// Owner: one thread. It is only a hint: files on a network file system that others write are not
// seen to grow.
#ifndef MUSTER_AGENTS_CORE_FILE_WATCH_H_
#define MUSTER_AGENTS_CORE_FILE_WATCH_H_

#include <functional>
#include <string>

namespace muster::agents {

class FileWatch {
 public:
  FileWatch();
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  // Is readable when a file has grown; -1 if the kernel has no watches left.
  int fd() const { return fd_; }
  // Returns a number for the watch, or -1 if the file must be polled.
  int Add(const std::string& path);
  void Remove(int watch);
  // Calls `grown` with the watch of each file that has grown since the last call.
  void Read(const std::function<void(int watch)>& grown);

 private:
  int fd_;
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_FILE_WATCH_H_
