// Reads what a run itself has left about its end, before that end is reported: the last lines of
// its logs if it failed, TAO's status.json if its job asks for that.
//
// There are two threads: one takes the ends out of what was observed; the other reads, and blocks
// for as long as the host takes, within the bounds below.
#ifndef MUSTER_AGENTS_CORE_END_READER_H_
#define MUSTER_AGENTS_CORE_END_READER_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/core/backend.h"
#include "agents/core/log_evidence.h"
#include "agents/core/output_host.h"
#include "agents/core/status_reader.h"
#include "agents/core/steady_time.h"
#include "agents/hosts/host.h"
#include "contract/failure_patterns.h"
#include "sync/mutex.h"

namespace muster::agents {

struct EndReaderOptions {
  // This many files of a run with many ranks are read: the rank that failed first, then the lowest.
  // 16 ranks; a fault of one rank shows on all. Together 8 MiB at most.
  size_t max_files = 32;
  // One round of observations may spend so long on it; the ends that are left over come with the
  // next round.
  absl::Duration max_round = absl::Seconds(10);
  // File servers lag: an end whose status.json lacks its last entry, or whose logs the host cannot
  // read, is reported as it is so long after the host has first said so. 0 s: at once. Until 30 s
  // have passed, clients of NFS may remember a directory as it was.
  absl::Duration grace = absl::Seconds(30);
  // An end that nothing more can be read about, or whose turn does not come, is told as the backend
  // has it so long after the round that first saw it, and its evidence says what could not be read.
  // A login host restarts in less than 10 min, and people wait for the end. Counted anew when the
  // agent starts.
  absl::Duration max_hold = absl::Minutes(10);
};

class EndReader {
 public:
  // The backend outlives it. The output is read on the backend's output host, or on this machine.
  explicit EndReader(Backend* backend, EndReaderOptions options = {});

  // An end about which the run's files may say more.
  struct End {
    RunHandle run;
    Observation seen;
  };

  // Takes the ends that are to be read out of the observations; Read must follow if there are any.
  // While earlier ends are being read, however long that takes, they are held back instead, and the
  // next observations bring them again. Returns at once.
  std::vector<End> TakeEnds(const std::vector<RunHandle>& runs, ObserveOutcome* outcome);

  // Reads the files of the ends, and returns the observations to report. An end that is held back
  // is FINISHING, with the reason, and the backend tells of it again: for options.grace at most
  // once the host has answered, and for options.max_hold at most while it cannot be asked, or
  // cannot say whether a status.json that decides about success is there. An end for which
  // max_round leaves no time is held back likewise, and is first in the next round. Blocks; one
  // call at a time.
  std::vector<Observation> Read(std::vector<End> ends);

  // Returns how long ago ends were taken whose Read has not returned; zero if there are none. Any
  // thread.
  absl::Duration reading_for() const;

 private:
  struct Reading {
    enum class Kind {
      kDone,       // all has been read, or there is nothing to read
      kMayChange,  // the host has answered, and may answer better soon
      kNoAnswer,   // nobody knows what is there
    };
    Kind kind = Kind::kDone;
    std::string why;  // unless it is done: a reason for people
  };

  // Returns whether the run has left anything that may change what is told of its end.
  bool NeedsReading(const RunHandle& run, const Observation& seen) const;
  Observation ReadOrHold(const RunHandle& run, Observation seen);
  Reading Read(const RunHandle& run, Observation* seen);
  // An end about which nothing is known yet, because the host has not answered or the run has had
  // no turn.
  Observation HoldOrTell(const Reading& reading, Observation seen, Observation told);
  Observation HoldOrTellLocked(const Reading& reading, Observation seen, Observation told)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static Reading NoTurn();
  Reading ReadStatus(const RunHandle& run, const RunOutput& output, Observation* seen);
  static Reading Unread(std::string_view what, const absl::Status& status);
  absl::StatusOr<std::vector<LogEnd>> ReadLogs(std::vector<LogSource> sources,
                                               const Observation& seen);

  Backend& backend_;
  const bool judges_ends_;
  const EndReaderOptions options_;
  const SteadyTime time_;
  const contract::FailurePatterns patterns_;
  OutputHost output_host_;
  hosts::Host& host_;
  StatusReader status_;
  // The run whose end was read last; the next round begins with the one after it. Read's.
  std::string last_read_;

  mutable Mutex mutex_;
  bool is_reading_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time reading_since_ ABSL_GUARDED_BY(mutex_);  // by time_; while is_reading_
  // The host's first answer about an end that is held back, by run key, in the time of time_.
  std::map<std::string, absl::Time> answered_since_ ABSL_GUARDED_BY(mutex_);
  // The time when the end was first seen to be there to read, by run key, in the time of time_.
  std::map<std::string, absl::Time> held_since_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_END_READER_H_
