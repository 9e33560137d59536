// Follows one output of one rank: the containers whose logs make it up, one after the other, and
// what is done after each answer.
#ifndef MUSTER_AGENTS_KUBERNETES_LOGS_LOG_TRACK_H_
#define MUSTER_AGENTS_KUBERNETES_LOGS_LOG_TRACK_H_

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agents/kubernetes/logs/log_follower.h"
#include "agents/kubernetes/logs/log_read.h"

namespace muster::kubernetes {

// The containers of one rank, one after the other.
struct LogSourceState {
  LogTarget target;
  // Since when the container is known to run no more; none if it runs, as far as is known.
  std::optional<absl::Time> ended;
  // By its node, which has told its end.
  std::optional<absl::Time> finished;
  // When a stream was last told to its end, and nothing has come since.
  absl::Time whole = absl::InfinitePast();
  int refusals = 0;
};

// Returns the containers whose output is the run's: main, and the init containers before it that
// have started. Other containers belong to whoever has put them into the pod.
std::vector<const ContainerObject*> ContainersToRead(const PodObject& pod);

// The meaning of an answer for the container that was asked for.
enum class LogStep {
  kFinish,        // it has been read to its end
  kGiveUp,        // the rest will never be read: say so
  kReadTogether,  // ask for both streams together
  kAgain,         // now
  kLater,         // after a pause
};

// Pure but for the counts in `source`. `was_last`: the answer was asked for without following,
// after the container's end.
LogStep StepAfter(const LogReadResult& result, bool was_last, const LogFollowerOptions& options,
                  LogSourceState* source);

struct LogTrack {
  LogTrack(std::string key, std::string path, LogPart wanted)
      : run_key(std::move(key)),
        part(wanted),
        file(std::make_shared<SharedSpool>(std::move(path))) {}

  const std::string run_key;
  const LogPart part;  // kStdout or kStderr; the former is all, where streams are told together
  const std::shared_ptr<SharedSpool> file;
  uint64_t arrival = 0;  // older ones go first
  bool has_loaded = false;
  // Tracks that an earlier process has left unfinished may be given up if nobody names them until
  // then.
  absl::Time patience = absl::InfinitePast();
  bool is_left = false;                // nobody will name it
  std::deque<LogSourceState> sources;  // the first one is read now

  bool is_reading = false;
  bool follows = false;  // the present read
  bool is_cut = false;
  std::optional<HttpLoop::CallId> call;
  absl::Time opened;
  absl::Duration pause;
  absl::Time due = absl::InfinitePast();
  absl::Status trouble;

  LogSourceState* Find(const std::string& key);
  // Adds the containers of the pod that are to be read, and learns which have ended. Returns
  // whether any of that was new.
  bool Name(const PodObject& pod);
  bool NoteEnds(const PodObject& pod);
  enum class Next {
    kNothing,  // before `due`, or before Watch names more
    kRead,     // the first of the queue
    kGiveUp,   // what an earlier process has begun and nobody names
  };
  // Brings the queue into the order in which it is to be read, without what has been read; loads
  // what an earlier process has left. At InfiniteFuture nothing more will be named.
  Next Arrange(absl::Time now);
  // Ends all that is to be read: it is in another file.
  absl::Status Drop();
  // Writes that the rest of what is being written is missing, and ends it.
  absl::Status GiveUp(const std::string& why);
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_LOGS_LOG_TRACK_H_
