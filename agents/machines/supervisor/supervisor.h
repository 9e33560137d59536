// The life of one run, from the claim to the exit record. Single-threaded.
//
// The supervisor is the parent of the run's processes, so that the agent may die and come back
// meanwhile. It is small because every run pays for it.
#ifndef MUSTER_AGENTS_MACHINES_SUPERVISOR_SUPERVISOR_H_
#define MUSTER_AGENTS_MACHINES_SUPERVISOR_SUPERVISOR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agents/core/lease_file.h"
#include "agents/machines/container.h"
#include "agents/machines/control_group.h"
#include "agents/machines/run_records.h"
#include "agents/machines/supervisor/child.h"
#include "agents/machines/supervisor/family.h"
#include "agents/machines/supervisor/user_program.h"

namespace muster::machines {

// This variable names a descriptor to which a byte is written once the run is claimed.
inline constexpr char kClaimedVariable[] = "MUSTER_SUPERVISOR_CLAIMED_FD";

struct SupervisorArguments {
  std::string directory;
  std::string devices;                 // for the claim
  std::vector<std::string> variables;  // "NAME=value", of the command, on top of the spec's
  int claimed_fd = -1;                 // told of the claim; -1: nobody waits for it
};

// Opens the descriptor that reads kSupervisorSignals, which are blocked from then on.
int OpenSignals();

class Supervisor {
 public:
  Supervisor(SupervisorArguments arguments, int signal_fd);

  // The process's exit code, see run_records.h.
  int Run();

 private:
  std::string PathOf(const char* name) const { return arguments_.directory + "/" + name; }

  void TellOfClaim() const;
  // Reserves the exit record and takes the claim; an exit code if the run is not ours.
  std::optional<int> TakeClaim();
  // Reads the spec and opens the outputs.
  bool Prepare();
  bool OpenOutput(const char* name, int* fd);

  // ---- secrets (supervisor_secrets.cc)
  // Writes those that are in files, and takes all out of the spec on the disk.
  bool TakeSecrets();
  // Forgets the values: the command has them.
  void ForgetSecrets();
  // Forgets the values, and removes the files that have them.
  void RemoveSecrets();

  // Sets the limits; a run that cannot have them goes without, and its exit record says so.
  void MakeGroup();
  void LeaveGroup();
  // Runs one phase to its end, or until the run must end. Returns whether the next phase may
  // follow.
  bool RunPhase(ExitRecord::Phase phase);
  // Returns whether nobody has asked for the run's end; begins the phase in the exit record.
  bool MayBegin(ExitRecord::Phase phase);
  // ---- the lease (supervisor_lease.cc)
  // Takes a look at the run's lease, at the first one takes it, and returns whether it is over, or
  // was none. False if the run keeps no lease.
  bool LeaseIsOver();
  // Returns the earlier one of a time and that of the next look at the lease; 0: never.
  int64_t UntilLook(int64_t until_ms) const;

  // Its program, once that has ended or time is up; nothing if there is none.
  std::optional<pid_t> StartPhase(ExitRecord::Phase phase);
  ChildRequest DescribeChild(ExitRecord::Phase phase);

  // ---- runs in a container (supervisor_container.cc)
  // Fetches the image if the host lacks it. Returns whether setup may follow.
  bool FetchImage();
  // Asks the tool: "", or why it cannot hold a container to these.
  std::string WhyToolSetsNoLimits(const GroupLimits& limits);
  ContainerPlan PlanFor(ExitRecord::Phase phase) const;
  // Writes down the phase's container before it is made, so that whoever finds the run without its
  // supervisor finds it, too.
  bool NoteContainer(const ContainerPlan& plan, ExitRecord::Phase phase);
  // Notes the phase's container, and writes the script that is started in it.
  bool PrepareContainer(const ContainerPlan& plan, ExitRecord::Phase phase,
                        const std::vector<std::string>& environment);
  // Asks after the phase how the container ended, and removes it.
  void LeaveContainer(ExitRecord::Phase phase, pid_t leader);
  // Sends TERM to what runs in a container of podman or docker; false if there is none, or none
  // that runs. podman itself, told so while it starts one, ends and leaves that running.
  bool TellContainer(pid_t leader);
  // Returns whether something in it was killed for memory, as far as the tool can tell.
  bool WasOom(const ContainerPlan& plan, pid_t leader);
  std::string ContainerName(ExitRecord::Phase phase) const;
  std::vector<std::string> DeviceNames() const;
  std::vector<std::string> ToolEnvironment(const ContainerPlan& plan) const;
  // Starts the container's tool, whose words go into kContainerLogFile; -1: it could not be
  // started.
  pid_t StartTool(const std::vector<std::string>& words);
  // Returns whether it ended well. `leader` is the phase's program, whose end is not to be missed
  // meanwhile.
  bool FinishTool(const std::vector<std::string>& words, pid_t leader);
  // Does the same with a time limit, by SteadyMilliseconds.
  bool FinishToolUntil(int64_t until_ms, const std::vector<std::string>& words, pid_t leader);
  void WriteStarted(pid_t pid);
  // Takes what muster-run-as has told of the program.
  void HearOfUserProgram();
  // Returns the end of the phase's program; `leader` is the child that it was started as.
  std::optional<int> EndOf(pid_t leader) const;
  // Kills what the phase has left. False: something would not die.
  bool KillRest(pid_t leader);
  // Waits until the phase's program has ended; when the run is being ended, until all its processes
  // have.
  void Wait(pid_t leader);
  void ReadSignals(pid_t leader);
  void EndRun(ExitRecord::Cause cause, pid_t leader);
  bool CancelWasAsked() const;
  // Returns the time that Wait may sleep, in ms; -1: until a signal comes.
  int PatienceMs() const;
  bool Failed(ExitRecord::Step step, int error, const std::string& path);
  int WriteReserved(const std::string& bytes) const;
  int WriteExit();

  const SupervisorArguments arguments_;
  const int signal_fd_;
  Family family_;
  std::optional<UserProgram> user_program_;  // of the phase, if another user runs it
  RunSpec spec_;
  bool has_secrets_ = false;
  ExitRecord exit_;
  RunGroup group_;
  std::string reserved_;  // the file that becomes the exit record
  int stdin_fd_ = -1;
  int stdout_fd_ = -1;
  int stderr_fd_ = -1;
  std::optional<agents::NodeLease> lease_;  // none: the run keeps none, or has not begun
  int64_t next_look_ms_ = 0;                // at it
  int64_t limit_ms_ = 0;                    // on the monotonic clock; 0: none
  int64_t kill_ms_ = 0;  // when the grace after TERM is over; 0: the run is not being ended
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_SUPERVISOR_SUPERVISOR_H_
