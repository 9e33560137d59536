// Quoting for a remote shell: a real sh reads back exactly the bytes, whatever they are.
#include "agents/hosts/shell_quote.h"

#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/fuzz/input.h"

namespace muster::fuzz {
namespace {

// Returns the text that /bin/sh prints for a script that it reads as an argument.
std::string OutputOf(const std::string& script) {
  int ends[2];
  Require(pipe(ends) == 0, "a pipe can be made");
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execl("/bin/sh", "sh", "-c", script.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[1]);
  std::string output;
  char piece[4096];
  for (ssize_t got = 0; (got = read(ends[0], piece, sizeof piece)) > 0;) {
    output.append(piece, static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  Require(WIFEXITED(status) && WEXITSTATUS(status) == 0, "sh ends well");
  return output;
}

}  // namespace
}  // namespace muster::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::fuzz;
  // One argument may be 128 KiB, and quotes take four bytes each.
  constexpr size_t kMostBytes = 16 << 10;
  const std::string_view text = TextOf(data, size);
  if (size > kMostBytes) return 0;
  const auto quoted = muster::hosts::ShellQuote(text);
  Require(quoted.ok() == (text.find('\0') == text.npos), "a NUL alone is refused");
  if (!quoted.ok()) return 0;
  Require(OutputOf("printf '%s|' " + *quoted + " end") == std::string(text) + "|end|",
          "sh reads back what was quoted, as one word");
  return 0;
}
