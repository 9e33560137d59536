// The record that batch.sh writes when the command of a run has ended.
#ifndef MUSTER_AGENTS_SLURM_EXIT_RECORD_H_
#define MUSTER_AGENTS_SLURM_EXIT_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace muster::slurm {

// A record has five short lines; anything longer is not one.
inline constexpr size_t kMaxExitRecordBytes = 4096;

struct ExitRecord {
  enum class Problem {
    kNone,              // the program ran; its end is its own
    kStart,             // the program could not be started
    kWorkingDirectory,  // its working directory could not be entered
    kFiles,             // the files of the run could not be read on the node
    kSrun,              // srun failed, and no task said why
  };
  uint64_t job_id = 0;
  uint32_t restart = 0;
  std::string phase;  // "setup" or "command"
  Problem problem = Problem::kNone;
  int code = 0;
  int signal = 0;
  uint32_t rank = 0;
  // Slurm sent a TERM (a cancel, a time limit) before the command ended: a 0 may be its answer to
  // that.
  bool terminated = false;
  absl::Time start;
  absl::Time end;

  // The command did what it was asked; batch.sh never runs it again after that, so this needs no
  // one else's word.
  bool Succeeded() const { return code == 0 && signal == 0 && !terminated; }
  // Whether the program ran at all, so that code and signal are its own.
  bool HasExitStatus() const { return problem == Problem::kNone; }
};

// Nothing if the text is not a whole record: it may still be being written.
std::optional<ExitRecord> ParseExitRecord(std::string_view text);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_EXIT_RECORD_H_
