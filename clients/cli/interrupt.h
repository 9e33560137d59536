// Ctrl-C while waiting.
#ifndef MUSTER_CLIENTS_CLI_INTERRUPT_H_
#define MUSTER_CLIENTS_CLI_INTERRUPT_H_

#include <memory>
#include <string>

#include "clients/cli/terminal.h"

namespace muster::cli {

// Handles an interrupt (Ctrl-C) of a command that waits: writes a remark and ends the process with
// code 130. The jobs go on. Make one before the client, because the threads of gRPC must not hear
// the signal either; it stays in force to the end of the process. Thread-safe.
class OnInterrupt {
 public:
  OnInterrupt(Terminal* terminal, std::string remark);
  void SetRemark(std::string remark);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_INTERRUPT_H_
