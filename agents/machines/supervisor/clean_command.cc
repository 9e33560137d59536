#include <cerrno>

#include "agents/machines/host_report.h"
#include "agents/machines/run_files.h"
#include "agents/machines/supervisor/host_commands.h"

namespace muster::machines {
namespace {

// A hundred thousand keys.
constexpr size_t kMaxInputBytes = 16 << 20;

}  // namespace

int CleanCommand(bool logs) {
  std::string input;
  if (!ReadInput(kMaxInputBytes, &input))
    return HostError("read which runs to clean from", "standard input", EMSGSIZE);
  for (const std::string& directory : LinesOf(input)) {
    if (RunKeyOf(directory).empty()) return HostError("clean the run", directory, EINVAL);
    RemoveRunBookkeeping(directory);
    if (logs) RemoveRunLogs(directory);
  }
  return kHostDone;
}

}  // namespace muster::machines
