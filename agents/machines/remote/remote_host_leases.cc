// Sends the file of the present lease to a host, beside all commands.
#include <utility>

#include "agents/machines/remote/remote_host.h"

namespace muster::machines {
namespace {

// The file is small, and the next renewal comes soon.
constexpr absl::Duration kLeasePatience = absl::Seconds(10);

}  // namespace

void RemoteHost::PutLease(std::string name, std::string content) {
  {
    const MutexLock lock(mutex_);
    lease_name_ = std::move(name);
    lease_ = std::move(content);
    is_lease_new_ = true;
  }
  changed_.notify_all();
}

void RemoteHost::LeaseLoop() {
  while (true) {
    {
      MutexLock lock(mutex_);
      while (!stopping_ && !is_lease_new_) lock.Wait(changed_);
      if (stopping_) return;
      is_lease_new_ = false;
    }
    if (SendLease().ok()) continue;
    // The host may be back before the next renewal.
    if (!Pause(kHostRetry)) return;
    const MutexLock lock(mutex_);
    is_lease_new_ = true;
  }
}

absl::Status RemoteHost::SendLease() {
  std::string directory;
  std::string name;
  std::string content;
  {
    const MutexLock lock(mutex_);
    // The runs' directory is in the host's own.
    directory = runs_directory_.substr(0, runs_directory_.rfind('/'));
    name = lease_name_;
    content = lease_;
  }
  if (name.empty()) return absl::FailedPreconditionError("there is no lease");
  if (directory.empty()) return NoAnswer();
  return RunSupervisor({"lease", std::move(directory), std::move(name)}, std::move(content),
                       kLeasePatience)
      .status();
}

}  // namespace muster::machines
