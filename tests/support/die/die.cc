// Loaded into an agent (LD_PRELOAD), ends it at its N-th effect on the outside: as a power cut
// would, before the effect. N is in the file that MUSTER_TEST_FUSE names, and counting begins when
// that file appears. How far it has counted is in the file beside it that ends with ".count".
// Effects are what changes a disk, starts a program or goes to an API server.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<int> counted{0};

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int ReadFuse(const char* path) {
  static auto* const next_open = Next<int(const char*, int, ...)>("open");
  const int fd = next_open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[16] = {};
  const ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  return size > 0 ? atoi(text) : 0;
}

void TellCount(const char* fuse, int count) {
  static auto* const next_open = Next<int(const char*, int, ...)>("open");
  char path[4096];
  const size_t length = strlen(fuse);
  if (length + sizeof ".count" > sizeof path) return;
  memcpy(path, fuse, length);
  memcpy(path + length, ".count", sizeof ".count");
  const int fd = next_open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return;
  char text[16];
  // Always as wide, so that whoever reads it at any moment reads a number.
  const int size = snprintf(text, sizeof text, "%8d", count);
  if (write(fd, text, size) != size) abort();
  close(fd);
}

void Effect() {
  static const char* const fuse = getenv("MUSTER_TEST_FUSE");
  if (fuse == nullptr) return;
  const int limit = ReadFuse(fuse);
  if (limit == 0) {
    counted = 0;
    return;
  }
  const int count = ++counted;
  TellCount(fuse, count);
  if (count >= limit) kill(getpid(), SIGKILL);
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
