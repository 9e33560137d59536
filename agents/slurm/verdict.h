// Derives the state of a run from the queue, the history and the exit record together. Pure.
#ifndef MUSTER_AGENTS_SLURM_VERDICT_H_
#define MUSTER_AGENTS_SLURM_VERDICT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "agents/core/backend.h"
#include "agents/slurm/exit_record.h"
#include "agents/slurm/history.h"
#include "agents/slurm/job_id.h"
#include "agents/slurm/queue.h"

namespace muster::slurm {

// batch.sh ends with this exit code when it does not run the command: another Slurm job owns the
// run, or the claim could not be written.
inline constexpr int kClaimLostCode = 75;

// The facts about one run.
struct RunFacts {
  std::string run_key;
  // The command's program, and its directory. Empty: the command is a script.
  std::string program;
  std::string working_directory;
  // The role that the record belongs to, of a job with roles.
  std::string role;
  JobId job_id;
  absl::Time now;
  // The state that was last reported.
  v1::RunState last_state = v1::RUN_STATE_UNSPECIFIED;

  // True if squeue answered; without that a missing row means nothing.
  bool queue_answered = false;
  std::optional<QueueRow> queue;
  // The Slurm job that converts its image, while the run waits for that.
  std::optional<QueueRow> conversion;
  // The last Slurm job that was to convert it, if that failed and Slurm remembers it; only for a
  // run whose image was not there.
  std::optional<QueueRow> ended_conversion;

  enum class History {
    kNotAsked,
    kNoAnswer,     // it could not be asked
    kAnswered,     // `history`, or nothing if it knows no such job
    kUnavailable,  // this cluster keeps no accounting, and slurmctld has forgotten the job
  };
  History history_answer = History::kNotAsked;
  std::optional<HistoryRow> history;

  // The exit record. It is left out if Slurm is known to have put the job back since, and the
  // command runs again.
  std::optional<ExitRecord> record;
  // The run's user can write the record: it may add to Slurm's own word, and never makes a success.
  bool record_is_the_users = false;
  // The reason that the record, if there is one, could not be read, and the time since then. Empty:
  // without `record` there is none.
  std::string record_error;
  absl::Duration unread_for;
  // It was read, and is not whole: it is being written, or its disk was full.
  bool record_is_torn = false;
  // The run's time limit ends it at this time: as squeue last said, or else counted from the
  // record's start. Nothing if neither is known.
  std::optional<absl::Time> limit_end;
  // The words that Slurm wrote into the batch script's output since the job's last start; their end
  // is enough.
  std::string slurm_output;
  // It may use this many bytes of memory on each node; 0 if not known.
  uint64_t memory_limit_bytes = 0;

  // True if a job has claimed the run, as far as is known. Only asked if squeue lists none.
  bool may_have_started = false;
  // True if Slurm remembers the array whose task the job is: it lists others of its tasks, by the
  // array's name, or its accounting has the end of one. A controller that has lost its memory does
  // not, and gives the array's number to another.
  bool array_is_known = false;

  // Muster asked for the end of this run.
  bool cancel_asked = false;
  // The agent has taken the run's claim: its command has not begun, and never will.
  bool is_fenced = false;
  // The time for which squeue has shown none of the user's jobs on nodes.
  absl::Duration none_runs_for;
  // The time since the job was first seen to have ended, or to be missing from the queue.
  absl::Duration ended_for;
  absl::Duration missing_for;
};

// The time for which Slurm's parts may disagree.
struct Patience {
  absl::Duration record_grace;
  absl::Duration absence_grace;
};

// An exit record alone decides so long after the job has left the queue if its accounting cannot be
// asked. 10 min: slurmdbd restarts in less, and people wait for the end. Counted anew when the
// agent starts.
inline constexpr absl::Duration kMaxSilence = absl::Minutes(10);

// A run that Slurm has forgotten waits so long for a record that cannot be read. 24 h: file servers
// are back by then. One that was canceled waits for kMaxSilence: nobody needs its end any more.
inline constexpr absl::Duration kMaxUnread = absl::Hours(24);

// A limit of the QOS on its user's jobs, of which none has run for so long, is one that the waiting
// job is over by itself. It is 5 min, because slurmctld looks at each waiting job anew within a
// minute, unless hundreds are ahead of it.
inline constexpr absl::Duration kAloneAfter = absl::Minutes(5);

// Names the reason to doubt a record that says 0 until Slurm has said how the job ended.
enum class Doubt {
  kNone,       // the command ended with 0 by itself, and batch.sh never runs it again
  kSignal,     // Slurm had begun to stop the job: the 0 may be the command's answer to that
  kTimeLimit,  // it ended about when its time limit would have ended it
  kStopped,    // Slurm says that it stopped the job
};
// Needs a record that says 0.
Doubt DoubtOf(const RunFacts& facts);
// Returns whether there is a record, and it alone proves a success.
bool ProvesSuccess(const RunFacts& facts);
// Returns whether the record says 0, and its user could have written that.
bool ClaimsSuccess(const RunFacts& facts);

// An end this close to the time limit, or after it, may come from the limit: the clocks of node and
// controller differ, and a prolog comes before the record's start.
inline constexpr absl::Duration kLimitSlack = absl::Seconds(10);

// Returns whether Slurm could not start the job on its node and holds it for good.
bool IsLaunchFailed(const RunFacts& facts);

// Returns whether asking the history would help to judge.
bool NeedsHistory(const RunFacts& facts);

// Returns nothing if the facts do not tell anything new: "could not be asked" and unknown words
// change no state.
std::optional<agents::Observation> Judge(const RunFacts& facts, const Patience& patience);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_VERDICT_H_
