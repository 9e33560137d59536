// A library that is loaded into an agent (LD_PRELOAD) and ends it at its N-th effect on the
// outside: as a power cut would, before the effect. N is in the file that MUSTER_TEST_FUSE names,
// and counting begins when that file appears. The count so far is in the file beside it that ends
// with ".count". Effects are what changes a disk, starts a program or goes to an API server. A
// thread that counts holds a lock on the fuse until it has killed. A thread that puts the fuse out
// under that lock therefore knows by the count whether the agent dies, and that it will not die
// later.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// 0: nothing was written yet.
int ReadNumber(int fd) {
  char text[16] = {};
  return pread(fd, text, sizeof text - 1, 0) > 0 ? atoi(text) : 0;
}

// The count is in its file alone, where whoever puts the fuse out finds it.
int CountOne(const char* fuse) {
  static auto* const next_open = Next<int(const char*, int, ...)>("open");
  char path[4096];
  const int length = snprintf(path, sizeof path, "%s.count", fuse);
  if (length < 0 || static_cast<size_t>(length) >= sizeof path) abort();
  const int fd = next_open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) abort();
  const int count = ReadNumber(fd) + 1;
  char text[16];
  // The number always has this width, so that whoever reads it at any moment reads a number.
  const int size = snprintf(text, sizeof text, "%8d", count);
  if (pwrite(fd, text, size, 0) != size) abort();
  close(fd);
  return count;
}

// It may have been put out while its lock was waited for.
bool IsAlight(int fuse) {
  struct stat status = {};
  return flock(fuse, LOCK_EX) == 0 && fstat(fuse, &status) == 0 && status.st_nlink > 0;
}

void Effect() {
  static auto* const next_open = Next<int(const char*, int, ...)>("open");
  // Programs that the agent starts have the same environment.
  static const bool is_agent = strcmp(program_invocation_short_name, "muster-agent") == 0;
  static const char* const path = is_agent ? getenv("MUSTER_TEST_FUSE") : nullptr;
  if (path == nullptr) return;
  const int fuse = next_open(path, O_RDONLY | O_CLOEXEC);
  if (fuse < 0) return;
  if (IsAlight(fuse) && CountOne(path) >= ReadNumber(fuse)) kill(getpid(), SIGKILL);
  close(fuse);
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  static auto* const next = Next<int(const char*, int, ...)>("open");
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
    Effect();
  }
  return next(path, flags, mode);
}

ssize_t send(int fd, const void* data, size_t size, int flags) {
  static auto* const next = Next<ssize_t(int, const void*, size_t, int)>("send");
  Effect();
  return next(fd, data, size, flags);
}

int fsync(int fd) {
  static auto* const next = Next<int(int)>("fsync");
  Effect();
  return next(fd);
}

int fdatasync(int fd) {
  static auto* const next = Next<int(int)>("fdatasync");
  Effect();
  return next(fd);
}

int rename(const char* from, const char* to) noexcept {
  static auto* const next = Next<int(const char*, const char*)>("rename");
  Effect();
  return next(from, to);
}

int link(const char* from, const char* to) noexcept {
  static auto* const next = Next<int(const char*, const char*)>("link");
  Effect();
  return next(from, to);
}

int mkdir(const char* path, mode_t mode) noexcept {
  static auto* const next = Next<int(const char*, mode_t)>("mkdir");
  Effect();
  return next(path, mode);
}

int unlink(const char* path) noexcept {
  static auto* const next = Next<int(const char*)>("unlink");
  Effect();
  return next(path);
}

int unlinkat(int directory, const char* path, int flags) noexcept {
  static auto* const next = Next<int(int, const char*, int)>("unlinkat");
  Effect();
  return next(directory, path, flags);
}

int posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const argv[],
                 char* const environment[]) {
  static auto* const next = Next<decltype(posix_spawnp)>("posix_spawnp");
  Effect();
  return next(pid, file, actions, attributes, argv, environment);
}

}  // extern "C"
