#include "agents/machines/run_files.h"

#include <unistd.h>

#include "agents/machines/brought_files.h"
#include "agents/machines/container.h"
#include "agents/machines/control_group.h"
#include "agents/machines/small_file.h"

namespace muster::machines {
namespace {

constexpr mode_t kSecretMode = 0600;

}  // namespace

int CloseWithoutStart(const std::string& directory, int64_t now_us) {
  const Claim claim = {.owner = Identify(getpid()), .devices = "", .closed_us = now_us};
  return ClaimFile(directory + "/" + kClaimFile, claim.Encode(), kSecretMode);
}

void RemoveRunBookkeeping(const std::string& directory) {
  RemoveGroupsOf(directory);
  for (const char* name :
       {kSpecFile, kStartedFile, kCancelFile, kSetupFile, kCommandFile, kEnterFile,
        kContainerLogFile, kEnrootImageFile, kApptainerImageFile, kConmonOomFile})
    unlink((directory + "/" + name).c_str());
}

void RemoveRunLogs(const std::string& directory) {
  RemoveUntouched(directory);
  for (const char* name : {kStdoutFile, kStderrFile, kClaimFile, kExitFile})
    unlink((directory + "/" + name).c_str());
  // rmdir leaves alone what is not empty.
  for (const char* name : {kResultsDirectory, kWorkDirectory})
    rmdir((directory + "/" + name).c_str());
  rmdir(directory.c_str());
}

}  // namespace muster::machines
