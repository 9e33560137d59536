// muster-supervisor runs one run of a machines cluster. Started by the agent, not by people.
#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agents/machines/supervisor/host_commands.h"
#include "agents/machines/supervisor/supervisor.h"
#include "agents/machines/supervisor/user_commands.h"

namespace {

constexpr char kUsage[] =
    "usage: muster-supervisor RUN_DIR DEVICES [NAME=VALUE]...\n"
    "\n"
    "Runs what RUN_DIR/spec says and writes its end to RUN_DIR/exit. muster-agent starts one for "
    "each\n"
    "run of a machines cluster; there is no need to start one by hand.\n"
    "\n"
    "  DEVICES      indexes of the run's GPUs with commas, or \"\"\n"
    "  NAME=VALUE   variables on top of the spec's\n"
    "  --help       print this and exit\n"
    "  --version    print the version and exit\n"
    "\n"
    "SIGTERM ends the run: TERM to its processes, KILL after the spec's grace.\n"
    "\n"
    "On hosts that the agent reaches over SSH it serves the agent until standard input ends:\n"
    "  serve            carries out commands\n"
    "  watch RUNS_DIR   tells what has become of runs, once that is news\n"
    "and on the agent's own machine:\n"
    "  old-work RUNS_DIR SECONDS MILLISECONDS RUN_KEY   removes work/ of runs that were forgotten "
    "so long ago, for so long, those behind that one first\n";

// Carries out a command of the agent:
//   start RUN_DIR DEVICES [NAME=VALUE]...   a supervisor for the spec, which is the input
//   stop RUN_DIR                            end the run, or keep it from ever starting
//   signal RUN_DIR NUMBER first|all         a signal to the run's processes
//   lease HOST_DIR NAME                     the file of a lease, which is the input
//   clean, clean-logs                       remove what is not needed any more of the runs in the
//                                           lines of the input
//   old-work                                as on the command line
//   limits                                  which limits runs can have here
int Do(const std::string& program, const std::vector<std::string>& words,
       const std::string& input) {
  using namespace muster::machines;
  const size_t count = words.size();
  const std::string_view name = count > 0 ? std::string_view(words[0]) : "";
  if (name == "limits" && count == 1) return LimitsCommand();
  if (name == "clean" && count == 1) return CleanCommand(/*logs=*/false, input);
  if (name == "clean-logs" && count == 1) return CleanCommand(/*logs=*/true, input);
  if (count < 2 || !words[1].starts_with('/')) return kSupervisorUsage;
  if (name == "start" && count >= 3) {
    return StartCommand(program, words[1], words[2], {words.begin() + 3, words.end()}, input);
  }
  if (name == "lease" && count == 3) return LeaseCommand(words[1], words[2], input);
  if (name == "stop" && count == 2) return StopCommand(words[1]);
  if (name == "signal" && count == 4) {
    const std::optional<ProcessSignal> signal = ParseSignalWords(words);
    return signal.has_value() ? SignalCommand(words[1], *signal) : kSupervisorUsage;
  }
  if (name == "old-work" && count == 5) {
    return OldWorkCommand(words[1], atoll(words[2].c_str()), atoi(words[3].c_str()), words[4]);
  }
  return kSupervisorUsage;
}

// Carries out the commands that are for the agent rather than for a run; -1 if it is none of these.
int Serve(const std::string& program, const std::vector<std::string>& words) {
  using namespace muster::machines;
  const std::string name = words.empty() ? "" : words[0];
  if (name == "serve" && words.size() == 1) {
    return ServeCommand([&](const std::vector<std::string>& command, const std::string& input) {
      return Do(program, command, input);
    });
  }
  if (name == "watch" && words.size() == 2) return WatchCommand(program, words[1]);
  return name == "old-work" ? Do(program, words, "") : -1;
}

// Returns the descriptor to be told of the claim; the run does not inherit it.
int ClaimedFd() {
  const char* text = getenv(muster::machines::kClaimedVariable);
  if (text == nullptr) return -1;
  const int fd = atoi(text);
  return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ? fd : -1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (const std::optional<int> code = muster::machines::UserCommand(words)) return *code;
  if (const int code = Serve(argc > 0 ? argv[0] : "", words); code >= 0) return code;
  // This comes first of all, for a supervisor that somebody has started by hand: a TERM that comes
  // from now on is seen.
  const int signal_fd = muster::machines::OpenSignals();
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "--help") {
    fputs(kUsage, stdout);
    return 0;
  }
  if (first == "--version") {
    puts("muster-supervisor " MUSTER_VERSION);
    return 0;
  }
  if (argc < 3 || !first.starts_with('/') || signal_fd < 0) {
    fputs(kUsage, stderr);
    return muster::machines::kSupervisorUsage;
  }
  muster::machines::Supervisor supervisor({.directory = argv[1],
                                           .devices = argv[2],
                                           .variables = {argv + 3, argv + argc},
                                           .claimed_fd = ClaimedFd()},
                                          signal_fd);
  return supervisor.Run();
}
