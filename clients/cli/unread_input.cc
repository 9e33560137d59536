#include "clients/cli/unread_input.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::cli {
namespace {

bool AreSame(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

bool HasBytes() {
  int held = 0;
  return ioctl(0, FIONREAD, &held) == 0 && held > 0;
}

// Returns whether it is not our parent's standard input as well.
bool IsOursAlone(const struct stat& input) {
  struct stat parents;
  const std::string path = fmt::format("/proc/{}/fd/0", getppid());
  return stat(path.c_str(), &parents) == 0 && !AreSame(input, parents);
}

}  // namespace

bool HasUnreadInput(const std::string& file) {
  struct stat input;
  if (fstat(0, &input) != 0) return false;
  struct stat own;
  if (!file.empty() && stat(file.c_str(), &own) == 0 && AreSame(input, own)) return false;
  // The parent tells nothing of a file: dash opens it itself before it starts a command.
  if (S_ISREG(input.st_mode)) return input.st_size > 0 && lseek(0, 0, SEEK_CUR) == 0;
  return S_ISFIFO(input.st_mode) && HasBytes() && IsOursAlone(input);
}

}  // namespace muster::cli
