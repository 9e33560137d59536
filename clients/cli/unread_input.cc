#include "clients/cli/unread_input.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>

namespace muster::cli {
namespace {

// Open files of our parent that are looked at. A shell has a few; a process with more is a program
// that starts commands, and to look at all of its files could take long.
constexpr int kMaxParentsFiles = 256;

bool AreSame(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

bool HasBytes() {
  int held = 0;
  return ioctl(0, FIONREAD, &held) == 0 && held > 0;
}

// Returns whether somebody may still write to the pipe or the socket.
bool HasWriter() {
  pollfd input{0, POLLIN | POLLRDHUP, 0};
  return poll(&input, 1, 0) >= 0 && (input.revents & (POLLHUP | POLLRDHUP | POLLERR)) == 0;
}

// The part that our parent has in our standard input.
enum class ParentsPart {
  kNone,     // another process writes there: a pipeline of a shell
  kShares,   // it has the same standard input
  kWrites,   // it holds the other end, as a program does that starts a command with pipes
  kUnknown,  // it is another user's, or privileged: sshd, sudo
};

ParentsPart PartInSocket() {
  ucred maker{};
  socklen_t size = sizeof(maker);
  const bool is_known = getsockopt(0, SOL_SOCKET, SO_PEERCRED, &maker, &size) == 0;
  return is_known && maker.pid == getppid() ? ParentsPart::kWrites : ParentsPart::kNone;
}

ParentsPart PartOfParent(const struct stat& input) {
  const std::string path = fmt::format("/proc/{}/fd", getppid());
  const std::unique_ptr<DIR, int (*)(DIR*)> files(opendir(path.c_str()), closedir);
  if (files == nullptr) return ParentsPart::kUnknown;
  ParentsPart part = S_ISSOCK(input.st_mode) ? PartInSocket() : ParentsPart::kNone;
  struct stat file;
  if (fstatat(dirfd(files.get()), "0", &file, 0) == 0 && AreSame(input, file))
    return ParentsPart::kShares;
  int seen = 0;
  while (const dirent* entry = readdir(files.get())) {
    if (++seen > kMaxParentsFiles) return ParentsPart::kWrites;
    const bool is_it = fstatat(dirfd(files.get()), entry->d_name, &file, 0) == 0 &&
                       S_ISFIFO(file.st_mode) && AreSame(input, file);
    // The mode of the link tells how the file was opened.
    const bool writes =
        is_it && fstatat(dirfd(files.get()), entry->d_name, &file, AT_SYMLINK_NOFOLLOW) == 0 &&
        (file.st_mode & S_IWUSR) != 0;
    if (writes) part = ParentsPart::kWrites;
  }
  return part;
}

}  // namespace

bool HasUnreadInput(const std::string& file) {
  struct stat input;
  if (fstat(0, &input) != 0) return false;
  struct stat own;
  if (!file.empty() && stat(file.c_str(), &own) == 0 && AreSame(input, own)) return false;
  // The parent tells nothing of a file: dash opens it itself before it starts a command.
  if (S_ISREG(input.st_mode)) return input.st_size > 0 && lseek(0, 0, SEEK_CUR) == 0;
  if (!S_ISFIFO(input.st_mode) && !S_ISSOCK(input.st_mode)) return false;
  switch (PartOfParent(input)) {
    case ParentsPart::kShares:
      return false;
    case ParentsPart::kNone:
      return HasBytes() || HasWriter();
    default:
      return HasBytes();
  }
}

}  // namespace muster::cli
