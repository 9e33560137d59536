// Keeps the runs that the agent has given up, with the reasons, until their end is reported. Each
// is on the disk before its Job is deleted, so that a restarted agent knows why the Job is gone.
#ifndef MUSTER_AGENTS_KUBERNETES_GIVEN_UP_H_
#define MUSTER_AGENTS_KUBERNETES_GIVEN_UP_H_

#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "agents/hosts/local_host.h"
#include "muster/v1/job.pb.h"
#include "sync/mutex.h"

namespace muster::kubernetes {

// Any thread may use it.
class GivenUpRuns {
 public:
  // Writes a small file for each run into the directory, which is made with the first one.
  explicit GivenUpRuns(std::string directory);

  // OK: the reason is on the disk.
  absl::Status Add(const std::string& run_key, const v1::Failure& failure);
  // Returns why the run was given up; nothing if it was not.
  std::optional<v1::Failure> Find(const std::string& run_key) const;
  void Forget(const std::string& run_key);
  // Forgets all runs but these.
  void KeepOnly(const std::set<std::string>& run_keys);

 private:
  std::string PathOf(const std::string& run_key) const { return directory_ + "/" + run_key; }

  const std::string directory_;
  hosts::LocalHost host_;
  mutable Mutex mutex_;
  std::map<std::string, v1::Failure> failures_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_GIVEN_UP_H_
