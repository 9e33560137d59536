// muster-supervisor: runs one run of a machines cluster. Started by the agent, not by people.
#include <cstdio>
#include <string_view>

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
    "SIGTERM ends the run: TERM to its processes, KILL after the spec's grace.\n";

}  // namespace

int main(int argc, char** argv) {
  // First of all: a TERM that comes from now on is seen.
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
  muster::machines::Supervisor supervisor(
      {.directory = argv[1], .devices = argv[2], .variables = {argv + 3, argv + argc}}, signal_fd);
  return supervisor.Run();
}
