// muster-supervisor: runs one run of a machines cluster. Started by the agent, not by people.
#include <fcntl.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "agents/machines/supervisor/host_commands.h"
#include "agents/machines/supervisor/supervisor.h"

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
    "On hosts that the agent reaches over SSH it gives these commands:\n"
    "  start RUN_DIR DEVICES QUESTION [NAME=VALUE]...   a supervisor for the spec on standard "
    "input\n"
    "  stop RUN_DIR                                     end the run, or keep it from ever "
    "starting\n"
    "  report RUNS_DIR QUESTION MILLISECONDS            what has become of runs, once that is "
    "news\n"
    "  question RUNS_DIR QUESTION                       end reports that wait with an older one\n"
    "  clean | clean-logs                               remove what is not needed any more of the "
    "runs on standard input\n"
    "  old-work RUNS_DIR SECONDS MILLISECONDS RUN_KEY   remove work/ of runs that were forgotten "
    "so long ago, for so long, those behind that one first\n"
    "  limits                                           which limits runs can have here\n";

// Runs a command that only the agent gives, from afar; -1: it is none of these.
int HostCommand(int argc, char** argv) {
  using namespace muster::machines;
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name == "limits" && argc == 2) return LimitsCommand();
  if (name == "clean" && argc == 2) return CleanCommand(/*logs=*/false);
  if (name == "clean-logs" && argc == 2) return CleanCommand(/*logs=*/true);
  if (argc < 3 || *argv[2] != '/') return -1;
  if (name == "start" && argc >= 5)
    return StartCommand(argv[0], argv[2], argv[3], argv[4], {argv + 5, argv + argc});
  if (name == "stop" && argc == 3) return StopCommand(argv[2]);
  if (name == "report" && argc == 5) return ReportCommand(argv[2], atoll(argv[3]), atoi(argv[4]));
  if (name == "old-work" && argc == 6)
    return OldWorkCommand(argv[2], atoll(argv[3]), atoi(argv[4]), argv[5]);
  if (name == "question" && argc == 4) return QuestionCommand(argv[2], argv[3]);
  return -1;
}

// The descriptor to be told of the claim; the run does not inherit it.
int ClaimedFd() {
  const char* text = getenv(muster::machines::kClaimedVariable);
  if (text == nullptr) return -1;
  const int fd = atoi(text);
  return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ? fd : -1;
}

}  // namespace

int main(int argc, char** argv) {
  if (const int code = HostCommand(argc, argv); code >= 0) return code;
  // First of all, for a supervisor that somebody has started by hand: a TERM that comes from now on
  // is seen.
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
