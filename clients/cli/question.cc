#include "clients/cli/question.h"

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <string>

namespace muster::cli {

bool CanAsk(const Session& session) {
  return session.terminal.err_is_terminal() && isatty(STDIN_FILENO) == 1;
}

bool IsWanted(Session& session, std::string_view verb, uint64_t jobs) {
  session.terminal.Err(fmt::format("muster: {} {} jobs? [y/N] ", verb, jobs));
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") return true;
  session.terminal.Err("muster: nothing was changed\n");
  return false;
}

}  // namespace muster::cli
