#include <unistd.h>

#include <cerrno>

#include "agents/machines/control_group.h"
#include "agents/machines/host_report.h"
#include "agents/machines/run_records.h"
#include "agents/machines/supervisor/host_commands.h"

namespace muster::machines {
namespace {

// A hundred thousand keys.
constexpr size_t kMaxInputBytes = 16 << 20;

void RemoveBookkeeping(const std::string& directory) {
  RemoveGroupsOf(directory);
  for (const char* name : {kSpecFile, kStartedFile, kCancelFile, kSetupFile, kCommandFile})
    unlink((directory + "/" + name).c_str());
}

void RemoveLogs(const std::string& directory) {
  for (const char* name : {kStdoutFile, kStderrFile, kClaimFile, kExitFile})
    unlink((directory + "/" + name).c_str());
  // rmdir leaves alone what is not empty.
  for (const char* name : {kResultsDirectory, kWorkDirectory})
    rmdir((directory + "/" + name).c_str());
  rmdir(directory.c_str());
}

}  // namespace

int CleanCommand(bool logs) {
  std::string input;
  if (!ReadInput(kMaxInputBytes, &input))
    return HostError("read which runs to clean from", "standard input", EMSGSIZE);
  for (const std::string& directory : LinesOf(input)) {
    if (RunKeyOf(directory).empty()) return HostError("clean the run", directory, EINVAL);
    RemoveBookkeeping(directory);
    if (logs) RemoveLogs(directory);
  }
  return kHostDone;
}

}  // namespace muster::machines
