#include <cerrno>

#include "agents/machines/clock_now.h"
#include "agents/machines/container_removal.h"
#include "agents/machines/host_report.h"
#include "agents/machines/run_files.h"
#include "agents/machines/split.h"
#include "agents/machines/supervisor/host_commands.h"

namespace muster::machines {
namespace {

// All containers that supervisors could not remove are removed within this time, as the agent waits
// for a minute. The others stay noted in the directories of their runs.
constexpr int kCleanRemovalMs = 20'000;

}  // namespace

int CleanCommand(bool logs, const std::string& lines) {
  const int64_t removals_end_ms = SteadyMilliseconds() + kCleanRemovalMs;
  for (const std::string& directory : LinesOf(lines)) {
    if (RunKeyOf(directory).empty()) return HostError("clean the run", directory, EINVAL);
    RemoveContainersOf(directory, {.until_ms = removals_end_ms});
    RemoveRunBookkeeping(directory);
    if (logs) RemoveRunLogs(directory);
  }
  return kHostDone;
}

}  // namespace muster::machines
