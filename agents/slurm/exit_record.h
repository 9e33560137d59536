// The record that batch.sh writes when the command of a run has ended.
#ifndef MUSTER_AGENTS_SLURM_EXIT_RECORD_H_
#define MUSTER_AGENTS_SLURM_EXIT_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "agents/slurm/job_id.h"

namespace muster::slurm {

// A record has seven lines, of which that of the nodes has up to 3,000 bytes, that of the cause up
// to 850, and the others are short; anything longer is not one.
inline constexpr size_t kMaxExitRecordBytes = 5120;

struct ExitRecord {
  enum class Problem {
    kNone,              // the program ran; its end is its own
    kStart,             // the program could not be started
    kWorkingDirectory,  // its working directory could not be entered
    kFiles,             // the files of the run could not be read on the node
    kSrun,              // srun failed, and no task said why
    kImage,             // its container could not be started
    kTimeout,           // it was stopped after slurm.timeout; its end is its own all the same
    kStreams,           // the files that a batch script reads or writes could not be opened
    kLease,             // its lease has ended
    kUnknown,           // nobody saw how it ended
  };
  // The reason of that problem.
  enum class Cause {
    kNone,          // the problem says it all, or the record is an older batch.sh's
    kRestartLimit,  // kTimeout: Slurm has started it so often already; `about` is the limit
    kRefused,       // kTimeout: Slurm did not requeue it; `about` is what it said
    kInput,         // kStreams: the standard input; `about` is the file, as of the next two
    kOutput,
    kError,
    kNotThere,      // kImage: the image's file is not there; `about` is the file, as of the next
    kNoSquashfs,    // it is no squashfs file
    kNotRefreshed,  // it was to be converted anew, and was not
    kStopped,       // its conversion was stopped
    kNoRoom,        // its conversion had no room
    kConversion,    // enroot could not convert it, and has said why
    kOutOfMemory,   // its conversion ran out of memory
    kKilled,        // its conversion was killed
    kNotStarted,    // kLease: it had ended before the program could start
    kNodes,         // kLease: a batch script on several nodes cannot keep one
  };
  JobId job_id;
  uint32_t restart = 0;
  std::string phase;  // "setup" or "command"
  Problem problem = Problem::kNone;
  Cause cause = Cause::kNone;
  std::string about;  // what the cause is about; valid UTF-8
  // The image could not be converted, so each node pulled it.
  bool pulled_image = false;
  int code = 0;
  int signal = 0;
  uint32_t rank = 0;
  // The batch shell got a TERM (a cancel, a time limit) before it knew of the command's end, so a 0
  // may be the answer to that.
  bool terminated = false;
  // It got a CONT, which Slurm sends everywhere before any TERM (and after a suspension): the
  // command may have answered a TERM that had yet to reach the batch shell.
  bool continued = false;
  absl::Time start;
  absl::Time end;
  // The nodes as Slurm writes them, "n[1-2]"; empty if not known.
  std::string node_list;

  // Tells whether the program itself ended with 0: a 0 after slurm.timeout, or after the end of its
  // lease, is the answer to a TERM.
  bool EndedWithZero() const {
    return code == 0 && signal == 0 && problem != Problem::kTimeout && problem != Problem::kLease;
  }
  // Returns whether batch.sh runs the command again when Slurm starts the job anew; this record is
  // then void.
  bool IsVoidAfterRequeue() const {
    return problem != Problem::kLease && (!EndedWithZero() || terminated || continued);
  }
  bool IsOfSetup() const { return phase == "setup"; }
  // Returns whether the user's command ran at all, so that code and signal are its own.
  bool HasExitStatus() const {
    return !IsOfSetup() && (problem == Problem::kNone || problem == Problem::kTimeout);
  }
};

// Returns nothing if the text is not a whole record: it may still be being written.
std::optional<ExitRecord> ParseExitRecord(std::string_view text);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_EXIT_RECORD_H_
