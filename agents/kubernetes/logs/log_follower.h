// Follows the output of runs' pods through the API server into files of the agent's own, from where
// agents/core ships them: a node that is lost, or a pod that is deleted, takes no output along that
// had been read.
#ifndef MUSTER_AGENTS_KUBERNETES_LOGS_LOG_FOLLOWER_H_
#define MUSTER_AGENTS_KUBERNETES_LOGS_LOG_FOLLOWER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agents/core/backend.h"
#include "agents/kubernetes/api/api.h"
#include "agents/kubernetes/objects/objects.h"

namespace muster::kubernetes {

struct LogFollowerOptions {
  // Logs of running containers that are followed at once; others wait in the order in which they
  // came, and are read at their end at the latest. Twenty connections, at a hundred streams each.
  size_t max_streams = 2000;
  // Reads, at once, of containers that have ended. These never wait for those that run.
  size_t max_last_reads = 64;
  // Refusals of a log whose container has ended before it is given up: three minutes and a half
  // with the pauses below. A server that cannot be reached refuses nothing.
  int max_refusals = 12;
  // Before a read is repeated; twice as long each time.
  absl::Duration first_pause = absl::Milliseconds(200);
  absl::Duration longest_pause = absl::Seconds(30);
  // The time that a stream may outlive its container before it is cut and the rest read without it.
  absl::Duration end_grace = absl::Seconds(5);
  // A read of a container that has ended that brings nothing for so long is broken off and asked
  // anew, so that none holds its place for ever. Whole seconds.
  absl::Duration last_read_silence = absl::Seconds(60);
  // Before it is looked again whether a full disk has room.
  absl::Duration disk_pause = absl::Seconds(5);
};

// One file for each rank and stream, SPOOL/RUN_KEY/rank-N.out and .err, with the output of the init
// containers first. If the server cannot tell the streams apart (the usual case, as that needs the
// feature gate PodLogsQuerySplitStreams), all is in .out and there is no .err. Files only grow. A
// line that begins with "muster: " takes the place of output that is missing.
//
// Any thread may use it. Nothing is lost and nothing repeated if the process is killed at any
// moment: one that is made anew on the same directory goes on where the last one was.
class LogFollower {
 public:
  // `wake` is called when a run's logs may have become complete, from another thread; it must not
  // block. `api` must outlive this object; the directory is made if it is not there.
  LogFollower(std::string spool_directory, Api* api, std::function<void()> wake = nullptr,
              LogFollowerOptions options = {});
  // Cuts all streams, and waits for that.
  ~LogFollower();
  LogFollower(const LogFollower&) = delete;
  LogFollower& operator=(const LogFollower&) = delete;

  // Call it on every change of a pod of the run, its last state included when it is deleted. It is
  // idempotent and cheap. A pod whose containers have not started costs no request.
  void Watch(const PodObject& pod, const std::string& run_key);
  // Returns whether every container of the run that ever started has been read to its end, or given
  // up with a line that says why. `pods` are all that the run still has or had, as they were last;
  // a log that was begun before of a pod that is not among them is given up. Call it for a run that
  // has ended; ask again after `wake`.
  bool IsComplete(const std::string& run_key, const std::vector<PodObject>& pods);
  // Returns two for each rank. Files are not there before there is output.
  std::vector<agents::LogSource> Logs(const std::string& run_key, uint32_t ranks) const;
  // Ends its streams and removes its files.
  void Forget(const std::string& run_key);

  // OK: logs can be followed. Otherwise it is the latest trouble that lasts, in the server's own
  // words: a full disk, a right that is missing, a node that cannot tell its logs.
  absl::Status health() const;
  // Counts the streams that are open now.
  size_t open_streams() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_LOGS_LOG_FOLLOWER_H_
