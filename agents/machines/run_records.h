// The files in a run's directory, and their content.
//
// - spec: what to run, written by the agent before it says that it has the run. Mode 0600, because
//   it holds the user's variables. A run with a spec and without a claim is in the queue.
// - claim: written by whoever starts the run, or cancels it in the queue; made with link(2), so
//   that there is one winner and the file is whole from its first moment. A run with a claim is
//   never started again; nor is one without it that shows any other trace of its start, since the
//   run itself can remove what is here.
// - started: written when the command has started.
// - exit: written when nothing of the run is left.
// - cancel: empty; made by the agent when someone asked that the run end.
// - setup, command: the user's scripts.
// - user: of a run whose programs another user's than the agent's runs (run_user.h): who that is.
//   The scripts and work/ are in a directory of that user's, and nothing here is open to it.
// - user-secrets: empty; the run has files of secrets in that directory.
// - enter, container-log, containers: of a run in a container (container.h).
// - groups: the control groups that limit the run (control_group.h).
// - stdout, stderr: the output of setup and command.
// - work/: the user's; setup and command start there unless the spec says otherwise.
//
// Uses nothing but the standard library: the supervisor links it.
#ifndef MUSTER_AGENTS_MACHINES_RUN_RECORDS_H_
#define MUSTER_AGENTS_MACHINES_RUN_RECORDS_H_

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agents/machines/process_id.h"
#include "agents/machines/run_user.h"

namespace muster::machines {

inline constexpr char kSpecFile[] = "spec";
inline constexpr char kClaimFile[] = "claim";
inline constexpr char kStartedFile[] = "started";
inline constexpr char kExitFile[] = "exit";
inline constexpr char kCancelFile[] = "cancel";
inline constexpr char kSetupFile[] = "setup";
inline constexpr char kCommandFile[] = "command";
inline constexpr char kStdoutFile[] = "stdout";
inline constexpr char kStderrFile[] = "stderr";
inline constexpr char kWorkDirectory[] = "work";
// The directory of a job that names none for its results.
inline constexpr char kResultsDirectory[] = "work/results";

// A job spec is at most 1 MiB on the wire; its environment and ours come on top.
inline constexpr size_t kMaxSpecBytes = 4 << 20;
// The other records have a few short fields. The supervisor reserves this much disk for the exit
// record before it starts anything, so that a disk that the run itself fills does not swallow how
// it ended.
inline constexpr size_t kMaxRecordBytes = 4096;

// The exit codes of a supervisor. A supervisor that cannot write down its end tells it by its exit
// code.
inline constexpr int kSupervisorRecorded = 0;     // the exit record says everything
inline constexpr int kSupervisorUsage = 2;        // bad arguments
inline constexpr int kSupervisorLostClaim = 3;    // another one has the run
inline constexpr int kSupervisorUnrecorded = 4;   // the run is over; its exit record is not written
inline constexpr int kSupervisorErrnoBase = 100;  // + errno: it could not make the claim

// A supervisor is started with these blocked: a TERM that comes before the supervisor can read
// signals waits until it can, and does not kill it before it has written anything down.
inline constexpr int kSupervisorSignals[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD};

struct RunSpec {
  std::string run_key;
  int32_t priority = 0;  // higher starts first
  uint64_t order = 0;    // of arrival: at the same priority, lower starts first
  // The resources that it takes from the machine.
  uint32_t cores = 0;
  uint64_t memory_bytes = 0;
  std::string gpu_type;
  uint32_t gpu_millis = 0;  // thousandths: a share of one GPU, or whole ones
  // The limits that the supervisor enforces where it can; 0 means no limit.
  uint64_t memory_limit_bytes = 0;
  uint32_t core_limit = 0;
  // The program of the run.
  std::string setup_script;    // empty: none
  std::string command_script;  // empty: command_words name a program
  std::vector<std::string> setup_words;
  std::vector<std::string> command_words;
  std::vector<std::string> environment;  // "NAME=value", all of it but the secrets
  // The job's secrets as "NAME=value", for variables and for files in the run's directory. The
  // supervisor takes them out of the file once the run has ended.
  std::vector<std::string> secrets;
  std::vector<std::string> secret_files;
  std::string working_directory;
  // The tool of its container (container.h); no tool if it has none.
  std::string container_tool;
  std::string image;
  std::vector<std::string> mounts;
  // The user of the program; the supervisor, and all records, are the agent's.
  RunUser user = {};
  int64_t time_limit_ms = 0;  // of setup and command together; 0: none
  int64_t grace_ms = 0;       // between TERM and KILL
  // The file with the lease that the run keeps (agents/core/lease_file.h); empty if it has none.
  std::string lease_file;

  std::string Encode() const;
  static std::optional<RunSpec> Decode(std::string_view bytes);
};

struct Started {
  ProcessId process;
  int64_t time_us = 0;  // since 1970

  std::string Encode() const;
  static std::optional<Started> Decode(std::string_view bytes);
};

struct ExitRecord {
  enum class Phase { kQueue, kSetup, kCommand, kImage };  // kImage comes before kSetup
  enum class End {
    kNothingRan,  // ended in the queue, or between setup and command
    kExited,
    kSignaled,
    kNotStarted,  // error, step and path say why
  };
  // The reason that the supervisor ended the run, if it did.
  enum class Cause { kNone, kTimeLimit, kCanceled, kTerminated, kLeaseEnded };
  // The step that failed with `error`. With kImage, `path` has what the container's tool said.
  enum class Step { kFiles, kWorkingDirectory, kProgram, kProcess, kImage };

  Phase phase = Phase::kCommand;
  End end = End::kNothingRan;
  Cause cause = Cause::kNone;
  int status = 0;  // exit code or signal
  Step step = Step::kProgram;
  int error = 0;  // errno
  std::string path = {};
  int64_t start_us = 0;  // of the command, since 1970; 0: it did not start
  int64_t end_us = 0;
  int64_t pid = 0;           // of the command
  bool left_behind = false;  // processes of the run could not be killed
  std::string sender = {};   // kTerminated: who sent the signal
  // Counts the processes that the kernel killed at the memory limit, which follows.
  int64_t oom_kills = 0;
  uint64_t memory_limit_bytes = 0;
  // The usage of all its processes that were waited for, and the most that one of them had. False:
  // none was, or a container's daemon had them. A supervisor of an earlier release never says it.
  bool is_counted = false;
  int64_t user_cpu_us = 0;
  int64_t system_cpu_us = 0;
  uint64_t max_rss_bytes = 0;
  std::string unlimited = {};  // why it had no limits although the spec has some

  // Returns at most kMaxRecordBytes.
  std::string Encode() const;
  static std::optional<ExitRecord> Decode(std::string_view bytes);
};

struct Claim {
  ProcessId owner;      // the supervisor, or the agent that canceled the run in its queue
  std::string devices;  // the GPUs' indexes with commas, as the agent gave them
  // The time since 1970 of a claim that keeps the run from ever starting; no other file is needed
  // to tell its end. 0: the owner has the run.
  int64_t closed_us = 0;

  // Returns the end of a run whose claim keeps it from starting.
  std::optional<ExitRecord> End() const;

  std::string Encode() const;
  static std::optional<Claim> Decode(std::string_view bytes);
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_RUN_RECORDS_H_
