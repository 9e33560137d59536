// Reads files for looks at the cluster, which must not wait for a file server that hangs: a read
// that takes longer than the patience is UNAVAILABLE, and so is every read until that one returns.
// The few writes that belong to a look go the same way.
//
// Any thread may use it. The one thread that reads may stay behind in a call of the system; the
// destructor waits for it.
#ifndef MUSTER_AGENTS_SLURM_PATIENT_READS_H_
#define MUSTER_AGENTS_SLURM_PATIENT_READS_H_

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/core/worker_lane.h"
#include "agents/hosts/host.h"
#include "sync/mutex.h"

namespace muster::slurm {

class PatientReads {
 public:
  // `host` outlives this object.
  PatientReads(hosts::Host* host, absl::Duration patience) : host_(*host), patience_(patience) {}

  // These work as those of hosts::Host.
  absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);
  std::vector<absl::StatusOr<std::string>> ReadMany(const std::vector<hosts::FilePart>& parts);
  absl::StatusOr<hosts::FileInfo> Stat(const std::string& path);
  absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes);
  absl::StatusOr<std::string> ReadFileRange(const std::string& path, uint64_t offset,
                                            size_t max_bytes);
  // Does what touches the path. UNAVAILABLE: it may have been done, or be done later. `act` owns
  // what it touches.
  absl::Status Do(const std::string& path, std::function<absl::Status(hosts::Host*)> act);
  // UNAVAILABLE: a read for which nobody waits any more is still under way.
  absl::Status State();

 private:
  bool Hangs();
  // Returns OK once `read` has returned in time. `read` owns what it touches: it may go on after
  // this has returned.
  absl::Status Await(const std::string& path, std::function<void()> read);
  template <typename T>
  absl::StatusOr<T> Read(const std::string& path, std::function<absl::StatusOr<T>()> read) {
    auto result = std::make_shared<absl::StatusOr<T>>(absl::UnknownError("not read"));
    absl::Status in_time = Await(path, [result, read = std::move(read)] { *result = read(); });
    return in_time.ok() ? *std::move(result) : in_time;
  }

  hosts::Host& host_;
  const absl::Duration patience_;
  Mutex mutex_;
  // The last read for which nobody waited to the end; the one thread has done those before it.
  std::shared_future<void> late_ ABSL_GUARDED_BY(mutex_);
  agents::WorkerLane lane_{1};
};

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_PATIENT_READS_H_
