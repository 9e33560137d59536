// Keeps the leases of runs: a ConfigMap in each namespace that has runs with one. Their pods see it
// as a file, which the start script obeys; agents/core/lease_file.h has its rules.
#ifndef MUSTER_AGENTS_KUBERNETES_LEASES_H_
#define MUSTER_AGENTS_KUBERNETES_LEASES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agents/kubernetes/api/api.h"
#include "sync/mutex.h"

namespace muster::kubernetes {

// Returns the longest time that a process of a run can live after the lease has ended.
absl::Duration LeaseFenceDelay();

// Any thread.
class Leases {
 public:
  // `api` must outlive this object.
  Leases(std::string cluster, std::vector<std::string> namespaces, Api* api);

  // Returns whether the account may write the object in each of the namespaces, as the server said
  // when it was first asked. A server that could not be asked is taken to allow it: no run with a
  // lease starts before the object was written.
  bool MayWrite();
  // Lets a run with a lease be in that namespace from now on. UNAVAILABLE: its pods could not see a
  // lease yet.
  absl::Status Open(const std::string& name_space, const std::string& run_key);
  // Takes over such a run that was launched before: the next renewal is its, too.
  void Adopt(const std::string& name_space, const std::string& run_key);
  // Makes all leases end `remaining` from now. One call at a time. The first error of those about
  // single namespaces.
  absl::Status Renew(absl::Duration remaining);

 private:
  struct Place {
    std::string name_space;
    std::string key;
    friend auto operator<=>(const Place&, const Place&) = default;
  };

  Place PlaceOf(const std::string& name_space, const std::string& run_key) const;
  absl::Status Write(const Place& place, absl::Duration remaining);

  const std::string cluster_;
  const std::vector<std::string> namespaces_;
  Api& api_;
  Mutex mutex_;
  std::optional<bool> may_write_ ABSL_GUARDED_BY(mutex_);
  std::map<Place, bool> places_ ABSL_GUARDED_BY(mutex_);           // whether it was written
  absl::Time end_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // by agents::SteadyNow
  uint64_t number_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_LEASES_H_
