// Runs that are on the cluster as suspended Jobs and wait until all of their pods find room: two
// halves of two runs never block each other, and what waits is in Muster's order.
//
// Thread-safe.
#ifndef MUSTER_AGENTS_KUBERNETES_START_QUEUE_H_
#define MUSTER_AGENTS_KUBERNETES_START_QUEUE_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "agents/kubernetes/obstacle.h"
#include "muster/v1/agent_link.pb.h"

namespace muster::kubernetes {

class StartQueue {
 public:
  using AssignmentPtr = std::shared_ptr<const v1::Assignment>;
  // Why a run would not start now if the others came first; nothing: it would, or nobody knows.
  using WaitsFor = std::function<std::optional<Misfit>(const v1::Assignment& run,
                                                       const std::vector<Claim>& before)>;

  // Nothing is ready before Open.
  explicit StartQueue(WaitsFor waits_for);
  void Open();

  // The run waits from now on; nothing happens to one that is in the queue already.
  void Add(AssignmentPtr run, bool held);
  void SetHeld(const std::string& run_key, bool held);
  // The run has been let go, by whomever, and its pods are not on nodes yet.
  void SetStarting(AssignmentPtr run);
  // Its pods are on their nodes, or it is over.
  void Remove(const std::string& run_key);

  // The runs that may start now, higher priorities and then older jobs first. The first that finds
  // no room on the nodes keeps what there is for it, and in each namespace the first that its
  // limits stand against keeps what there is of them; others behind it may pass in what it does not
  // need. Each is told once and counts as starting; Return says that it could not be let go.
  std::vector<AssignmentPtr> TakeReady();
  void Return(const std::string& run_key);

  // Why it waits; empty: it does not, or nobody has looked yet.
  std::string ReasonOf(const std::string& run_key) const;
  // It is held back, as far as the queue has been told.
  bool IsHeld(const std::string& run_key) const;

 private:
  struct Entry {
    AssignmentPtr run = {};
    bool held = false;
    bool starting = false;
    absl::Time since = {};  // starting
    std::string reason = {};
  };
  // Negative priority, job, run key: the order in which runs are asked.
  using Place = std::pair<std::pair<int64_t, uint64_t>, std::string>;
  static Place PlaceOf(const v1::Assignment& run);

  const WaitsFor waits_for_;
  mutable std::mutex mutex_;
  bool is_open_ = false;
  std::map<std::string, Entry> entries_;  // by run key
  std::map<Place, std::string> order_;    // of those that wait
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_START_QUEUE_H_
