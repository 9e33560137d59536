// Writes results and remarks.
#ifndef MUSTER_CLIENTS_CLI_TERMINAL_H_
#define MUSTER_CLIENTS_CLI_TERMINAL_H_

#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>

#include "sync/mutex.h"

namespace muster::cli {

// Any thread may use it.
class Terminal {
 public:
  // Looks at the standard streams and at NO_COLOR and TERM.
  explicit Terminal(bool quiet);

  bool out_is_terminal() const { return out_is_terminal_; }
  bool err_is_terminal() const { return err_is_terminal_; }
  bool colours() const { return colours_; }
  // The columns of the terminal to which results go; 0: they go elsewhere, or it does not tell.
  size_t width() const;
  // The same of its lines.
  size_t height() const;

  // Writes results at once. When the reader has gone (as with `| head`), the process ends quietly.
  void Out(std::string_view text) { Write(1, text); }
  // Writes to standard error: the job's, and errors of our own.
  void Err(std::string_view text) { Write(2, text); }
  // Leaves out remarks from now on, as -q does.
  void BeQuiet() { quiet_ = true; }
  bool is_quiet() const { return quiet_; }
  // Writes a remark, as "muster: TEXT"; nothing with -q.
  void Note(std::string_view text);
  // The same, right before the process ends, without waiting for a thread whose reader has stopped
  // reading.
  void LastNote(std::string_view text);

 private:
  void Write(int fd, std::string_view text);
  static void WriteAll(int fd, std::string_view text);

  std::atomic<bool> quiet_;
  const bool out_is_terminal_;
  const bool err_is_terminal_;
  const bool colours_;
  Mutex mutex_;  // keeps the pieces of several threads apart
};

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_TERMINAL_H_
