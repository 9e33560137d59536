#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "agents/hosts/fd.h"
#include "agents/hosts/pidfd.h"
#include "agents/machines/clock_now.h"
#include "agents/machines/host_report.h"
#include "agents/machines/process_id.h"
#include "agents/machines/process_search.h"
#include "agents/machines/run_files.h"
#include "agents/machines/small_file.h"
#include "agents/machines/supervisor/host_commands.h"

namespace muster::machines {
namespace {

// Returns the supervisor that has the run; nothing if none lives.
std::optional<ProcessId> OwnerOf(const std::string& directory) {
  std::string bytes;
  ReadSmallFile(directory + "/" + kClaimFile, kMaxRecordBytes, &bytes);
  if (const std::optional<Claim> claim = Claim::Decode(bytes)) return claim->owner;
  const auto supervisors = ListSupervisors();
  const auto found = supervisors.find(directory);
  if (found == supervisors.end()) return std::nullopt;
  return found->second.owner;
}

// Returns whether it was there.
bool Terminate(const ProcessId& process) {
  // The handle comes first, then the look, so that what the look sees is what the handle holds.
  const hosts::Fd pidfd(hosts::PidfdOpen(process.pid));
  return pidfd.valid() && Identify(process.pid) == process &&
         hosts::PidfdSendSignal(pidfd.get(), SIGTERM) == 0;
}

}  // namespace

int StopCommand(const std::string& directory) {
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    return HostError("make the directory", directory, errno);
  const std::string cancel_path = directory + "/" + kCancelFile;
  const int cancel_error = WriteSmallFile(cancel_path, "", 0600);
  const bool was_started = access((directory + "/" + kStartedFile).c_str(), F_OK) == 0;
  if (!was_started && !ListSupervisors().contains(directory)) {
    // The process that takes the claim has the run: nobody will start it now.
    const int error = CloseWithoutStart(directory, NowMicroseconds());
    if (error == 0) return kHostDone;
    if (error != EEXIST) return HostError("make", directory + "/" + kClaimFile, error);
  }
  const std::optional<ProcessId> owner = OwnerOf(directory);
  // The agent knows that the TERM was its own; on a full disk there is no note of that.
  if (owner.has_value() && Terminate(*owner)) return kHostDone;
  return cancel_error == 0 ? kHostDone : HostError("make", cancel_path, cancel_error);
}

}  // namespace muster::machines
