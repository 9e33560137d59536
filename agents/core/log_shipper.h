// Carries the logs of runs into the broker's archive, while they run and after their end.
//
// The shipper's own thread owns all state but the inbox; methods may be called from any thread and
// only put something into it. Logs take turns, one chunk of at most 64 KiB each, so that neither a
// flood nor a stalled file delays the rest.
#ifndef MUSTER_AGENTS_CORE_LOG_SHIPPER_H_
#define MUSTER_AGENTS_CORE_LOG_SHIPPER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agents/core/backend.h"
#include "agents/core/broker_link.h"
#include "agents/hosts/host.h"

namespace muster::agents {

struct LogShipperOptions {
  // affects behaviour
  absl::Duration min_backoff = absl::Seconds(1);  // before the stream is dialled again
  absl::Duration max_backoff = absl::Seconds(30);
  // affects performance
  uint64_t max_bytes_in_flight = 8 << 20;  // read and not yet in the archive, of all logs
  size_t max_open_files = 256;             // descriptors kept between reads
  // A file that is not seen to grow is looked at after the shortest time, and at last as rarely as
  // the longest.
  absl::Duration min_poll = absl::Milliseconds(50);
  absl::Duration max_poll = absl::Seconds(1);
  // Files on another host are all looked at together, this often.
  absl::Duration remote_poll = absl::Seconds(1);
};

class LogShipper {
 public:
  struct Environment {
    std::function<std::unique_ptr<PushLink>(PushLink::Callbacks)> dial;
    std::function<std::vector<LogSource>(const RunHandle&)> sources;  // may block for a short time
    // A run that has ended is in the archive, whole. Called by the shipper's thread.
    std::function<void(const std::string& run_key)> shipped;
    // The host that has the sources; null means this machine. Must outlive the shipper.
    hosts::Host* host = nullptr;
  };

  LogShipper(LogShipperOptions options, Environment environment);
  // Ends the thread; what was not shipped is shipped by the next process.
  ~LogShipper();

  // The control link is up: the archive takes the logs of this cluster and journal.
  void Connect(const std::string& cluster, const std::string& journal_id);
  void Disconnect();

  // Does the effect of this name. A repetition with `ended` set says that the run has ended.
  void Ship(const RunHandle& run, bool ended);
  void Drop(const std::string& run_key);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_LOG_SHIPPER_H_
