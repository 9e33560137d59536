// Runs that the agent has given up, and why, until their end is told: written before the Job is
// deleted, so that an agent that was killed then knows what has become of it.
#ifndef MUSTER_AGENTS_KUBERNETES_GIVEN_UP_H_
#define MUSTER_AGENTS_KUBERNETES_GIVEN_UP_H_

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "agents/hosts/local_host.h"
#include "muster/v1/job.pb.h"

namespace muster::kubernetes {

// Thread-safe.
class GivenUpRuns {
 public:
  // One small file for each in the directory, which is made when there is something to write.
  explicit GivenUpRuns(std::string directory);

  // OK: it is on the disk, whatever happens to this process.
  absl::Status Add(const std::string& run_key, const v1::Failure& failure);
  // Nothing: it was not given up.
  std::optional<v1::Failure> Find(const std::string& run_key) const;
  void Forget(const std::string& run_key);
  // Forgets all others.
  void KeepOnly(const std::set<std::string>& run_keys);

 private:
  std::string PathOf(const std::string& run_key) const { return directory_ + "/" + run_key; }

  const std::string directory_;
  hosts::LocalHost host_;
  mutable std::mutex mutex_;
  std::map<std::string, v1::Failure> failures_;  // guarded by mutex_
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_GIVEN_UP_H_
