#include "clients/cli/terminal.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "clients/cli/exit_code.h"
#include "sync/mutex.h"

namespace muster::cli {
namespace {

bool WantsColours(bool out_is_terminal) {
  // https://no-color.org: any value but the empty one.
  const char* no_color = getenv("NO_COLOR");
  const char* term = getenv("TERM");
  return out_is_terminal && (no_color == nullptr || *no_color == '\0') &&
         (term == nullptr || std::string_view(term) != "dumb");
}

}  // namespace

Terminal::Terminal(bool quiet)
    : quiet_(quiet),
      out_is_terminal_(isatty(1) == 1),
      err_is_terminal_(isatty(2) == 1),
      colours_(WantsColours(out_is_terminal_)) {}

size_t Terminal::width() const {
  winsize size{};
  if (!out_is_terminal_ || ioctl(1, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

size_t Terminal::height() const {
  winsize size{};
  if (!out_is_terminal_ || ioctl(1, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_row;
}

void Terminal::Note(std::string_view text) {
  if (!quiet_) Err(fmt::format("muster: {}\n", text));
}

void Terminal::LastNote(std::string_view text) {
  if (!quiet_) WriteAll(2, fmt::format("muster: {}\n", text));
}

void Terminal::Write(int fd, std::string_view text) {
  const MutexLock lock(mutex_);
  WriteAll(fd, text);
}

void Terminal::WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = write(fd, text.data(), text.size());
    if (wrote >= 0) {
      text.remove_prefix(static_cast<size_t>(wrote));
    } else if (errno == EAGAIN) {
      // Someone else made our stream non-blocking; wait for room.
      pollfd room{fd, POLLOUT, 0};
      poll(&room, 1, -1);
    } else if (errno != EINTR) {
      // Results that cannot be delivered are an error, a reader that had enough is not worth a
      // word.
      if (errno != EPIPE && fd == 1) perror("muster: cannot write standard output");
      if (fd == 1) _exit(kError);
      return;
    }
  }
}

}  // namespace muster::cli
