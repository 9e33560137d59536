// Makes the calls to the remote broker, and counts them by name for people.
#ifndef MUSTER_AGENTS_MUSTER_CONNECTION_H_
#define MUSTER_AGENTS_MUSTER_CONNECTION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/muster/remote.h"
#include "clients/cpp/client.h"
#include "sync/mutex.h"

namespace muster::remote {

// Any thread may use it.
class Connection {
 public:
  // Reads the files of the settings, and connects with the first call.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const RemoteConfig& config);

  explicit Connection(std::unique_ptr<client::Client> client) : client_(std::move(client)) {}

  // Counts a call of that name.
  client::Client& For(const std::string& call) {
    const MutexLock lock(mutex_);
    ++calls_[call];
    return *client_;
  }
  std::map<std::string, uint64_t> calls() const {
    const MutexLock lock(mutex_);
    return calls_;
  }

  // Returns the jobs that match the filter, with their latest runs.
  absl::StatusOr<std::vector<v1::Job>> List(const std::string& filter);
  // Returns the job of a run of the cluster, with its latest run; nothing if the broker has none.
  // Only jobs of this agent's own user count. It is asked for each time: the token's file may get
  // that of another user.
  absl::StatusOr<std::optional<v1::Job>> FindRun(const std::string& cluster,
                                                 const std::string& run_key);
  // Returns all clusters of the broker.
  absl::StatusOr<std::vector<v1::Cluster>> Clusters();

 private:
  const std::unique_ptr<client::Client> client_;
  mutable Mutex mutex_;
  std::map<std::string, uint64_t> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::remote

#endif  // MUSTER_AGENTS_MUSTER_CONNECTION_H_
