// The supervisor processes of this machine's runs: starting, recognising, watching and signalling
// them. Owned by the scheduler's thread.
#ifndef MUSTER_AGENTS_MACHINES_SUPERVISORS_H_
#define MUSTER_AGENTS_MACHINES_SUPERVISORS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/hosts/fd.h"
#include "agents/machines/process_id.h"
#include "agents/machines/run_records.h"

namespace muster::machines {

struct SupervisorEvent {
  enum class Kind {
    kPosted,  // someone called Post
    kRecord,  // a record appeared in the run's directory
    kEnded,   // the supervisor has ended; Forget it
  };
  Kind kind = Kind::kPosted;
  std::string run_key = {};  // not for kPosted
  std::string record = {};   // for kRecord: the file's name
};

// Returns the supervisor that is installed beside this program.
std::string DefaultSupervisorPath();

class Supervisors {
 public:
  static absl::StatusOr<std::unique_ptr<Supervisors>> Create(std::string program);

  // Starts a supervisor in a session of its own, and watches it and the directory.
  absl::StatusOr<pid_t> Start(const std::string& run_key, const std::string& directory,
                              const std::string& devices,
                              const std::vector<std::string>& variables);
  // Watches a supervisor that an earlier agent or another process has started. NOT_FOUND: that
  // process is gone, even if another one has its pid now.
  absl::Status Adopt(const std::string& run_key, const std::string& directory,
                     const ProcessId& process);
  // Sends TERM to the run's supervisor, and to no other process that has got its pid.
  void Terminate(const std::string& run_key);
  // Ends the watch. Returns the end of the supervisor as waitpid(2) reports it; nothing if it was
  // not a child of this process.
  std::optional<int> Forget(const std::string& run_key);

  // Waits for events. Returns none once `patience` is over.
  std::vector<SupervisorEvent> Wait(absl::Duration patience);
  // Ends a Wait, from any thread.
  void Post();

 private:
  struct Entry {
    pid_t pid = -1;
    bool is_child = false;  // must be reaped here; an adopted one has another parent
    hosts::Fd pidfd;
    uint64_t id = 0;  // in epoll
    int watch = -1;   // of inotify
  };

  explicit Supervisors(std::string program);
  absl::Status Watch(const std::string& run_key, const std::string& directory, Entry entry);
  void ReadRecordEvents(std::vector<SupervisorEvent>* events);

  const std::string program_;
  hosts::Fd epoll_;
  hosts::Fd wakeup_;
  hosts::Fd inotify_;
  hosts::Fd null_;
  uint64_t next_id_;
  std::map<std::string, Entry> entries_;  // by run key
  std::map<uint64_t, std::string> ids_;
  std::map<int, std::string> watches_;
};

// Kills what is left of a run whose supervisor is gone: every process that has the run's key in its
// environment.
void KillStragglers(std::string_view run_key);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_SUPERVISORS_H_
