// Runs the muster binary as a user would.
#ifndef MUSTER_TESTS_UNIT_CLIENTS_COMMAND_H_
#define MUSTER_TESTS_UNIT_CLIENTS_COMMAND_H_

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace muster::cli {

struct Outcome {
  int code = -1;  // the exit code; 128 + the signal that ended it
  std::string out;
  std::string err;
};

// One process. Its home is an empty directory, and MUSTER_BROKER names the broker.
class Command {
 public:
  Command(const std::string& broker, std::vector<std::string> arguments, bool on_terminal = false,
          std::vector<std::string> environment = {});
  ~Command();

  // Waits until so much of standard output or standard error has come that it holds the text.
  void AwaitOut(const std::string& text);
  void AwaitErr(const std::string& text);
  // Waits until the command has filled the pipe of its standard output, which nobody reads
  // meanwhile.
  void AwaitFullOut();
  // Waits like AwaitErr, but without reading standard output.
  void AwaitErrAlone(const std::string& text);
  void Signal(int signal);
  // Waits for the end.
  Outcome Finish();

 private:
  // Reads what comes next on either stream; false: both are closed.
  bool ReadMore();

  pid_t pid_ = -1;
  int out_ = -1;  // standard output's other end; -1: closed
  int err_ = -1;
  Outcome outcome_;
};

// Runs the command from start to end.
Outcome RunCommand(const std::string& broker, std::vector<std::string> arguments);
// Does the same with a terminal as standard output.
Outcome RunOnTerminal(const std::string& broker, std::vector<std::string> arguments,
                      std::vector<std::string> environment = {});

}  // namespace muster::cli

#endif  // MUSTER_TESTS_UNIT_CLIENTS_COMMAND_H_
