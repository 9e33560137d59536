// Queues runs that are on the cluster as suspended Jobs and wait until all of their pods find room
// at once. So two runs never block each other with half of their pods, and runs start in Muster's
// order. To let a run go is to resume its Job.
//
// Any thread may use it.
#ifndef MUSTER_AGENTS_KUBERNETES_START_QUEUE_H_
#define MUSTER_AGENTS_KUBERNETES_START_QUEUE_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "agents/core/steady_time.h"
#include "agents/kubernetes/cluster/obstacle.h"
#include "muster/agent/v1/agent_link.pb.h"
#include "sync/mutex.h"

namespace muster::kubernetes {

class StartQueue {
 public:
  using AssignmentPtr = std::shared_ptr<const agent::v1::Assignment>;
  // The cluster behind the runs that are starting: of each kind, those that ask for the same.
  using Look = std::function<std::unique_ptr<RoomLeft>(const std::vector<Alike>& starting)>;

  using Clock = std::function<absl::Time()>;
  // Each TakeReady calls `look` once, if any run waits. No run is ready before Open.
  explicit StartQueue(Look look, Clock clock = agents::SteadyNow);
  void Open();
  bool is_open() const;

  // The run's launch has begun. The run keeps its place and the room for it, so that a later run
  // whose launch ends earlier does not go first: for kLaunchCounts, or until Add or Remove.
  void Expect(AssignmentPtr run, bool held);
  // The run waits from now on. Does nothing to a run that waits already.
  void Add(AssignmentPtr run, bool held);
  // Sets the latest wish, which overrides Expect and Add, even if it comes before them. Returns at
  // once, also while TakeReady looks for room.
  void SetHeld(const std::string& run_key, bool held);
  // The run has been let go, by Muster or by others, and its pods are not on nodes yet.
  void SetStarting(AssignmentPtr run);
  // The run's pods are on their nodes. Its room counts for kPlacedCounts more, because the news of
  // nodes may be older. Forgets its wishes.
  void SetPlaced(const std::string& run_key);
  // The run is over. Forgets its wishes.
  void Remove(const std::string& run_key);

  // Returns the runs that may start now, those of higher priority and then of older jobs first.
  // Each is returned once and counts as starting; runs that could not be let go before come after
  // the others.
  //
  // The first run that finds no room on the nodes keeps the room that is free; in each namespace,
  // the first run that the limits hold back keeps its share of them. Runs behind it may pass in
  // room that it does not need, and for kMayBePassed in room that it cannot use yet. A run that
  // could not start even if all of Muster's runs had ended keeps nothing.
  //
  // If very many kinds of runs find no room, each call looks at some of them, and the next one goes
  // on from there. `only`: only that run, if it is ready; empty means all. It costs little if a run
  // that asks for the same waits before it: then that one comes first, and no look is needed.
  //
  // For each returned run the caller then calls SetLetGo, Return, Postpone, PutBack or Remove.
  std::vector<AssignmentPtr> TakeReady(const std::string& only = "");
  // The run could not be let go. It is ready again only after a pause: kFirstPause, then twice as
  // long each time, up to kLongestPause. It leaves its room to others meanwhile. `may_be_let_go`:
  // the server may have done it all the same; nobody knows until SetAsked.
  void Return(const std::string& run_key, std::string why, bool may_be_let_go = false);
  // Returns whether it is unknown if the run was let go.
  bool MayBeLetGo(const std::string& run_key) const;
  // The server has said whether the run was let go, and the queue has been told.
  void SetAsked(const std::string& run_key);
  // Nobody has tried to let the run go: it is ready again after kFirstPause.
  void Postpone(const std::string& run_key);
  // Nobody has tried to let the run go, because it is held: it is ready as soon as it is released.
  void PutBack(const std::string& run_key);
  // The run has been let go.
  void SetLetGo(const std::string& run_key);
  // Returns whether TakeReady has returned the run and its caller has not answered yet.
  bool IsBeingLetGo(const std::string& run_key) const;
  // The run's Job, which had been let go, is suspended again and has no pods on nodes: the run is
  // ready as soon as it may start.
  void TakeBack(const std::string& run_key);

  // Returns why a run of this need and priority that comes last would wait; nothing: it would not,
  // or too little is known. Ignores its run key.
  std::optional<Misfit> WouldWait(const agent::v1::Assignment& run) const;
  // Returns the runs that wait, in any order; held ones, too.
  std::vector<AssignmentPtr> Waiting() const;

  // Returns why the run waits; without a code: it does not, or nobody has looked yet.
  v1::StateReason ReasonOf(const std::string& run_key) const;
  // Returns whether the run is to be held, as far as the queue has been told.
  bool IsHeld(const std::string& run_key) const;
  // Returns whether the run certainly stays until its release: it is to be held, nobody is letting
  // it go, and nobody may have done so.
  bool IsKeptBack(const std::string& run_key) const;
  // Returns the latest wish since the last Remove; nothing if there was none.
  std::optional<bool> WishOf(const std::string& run_key) const;

 private:
  // The states of a run:
  //
  //   Expect --> Launching --Add--> Queued --TakeReady--> LettingGo --SetLetGo--> Starting
  //                                    ^                       |                      |
  //                                    +-- Return, Postpone, --+                  SetPlaced
  //                                    |   PutBack                                    v
  //                                    +------------ TakeBack ------------------- Placed
  //
  // SetStarting and SetPlaced come from any of them, because others let runs go, too.
  struct Launching {
    absl::Time since;
  };
  struct Queued {
    std::optional<absl::Time> not_before = {};  // it is not ready
  };
  struct LettingGo {  // and the server has not answered
    absl::Time since;
  };
  struct Starting {
    absl::Time since;
  };
  struct Placed {  // its pods are on their nodes
    absl::Time since;
  };
  // The latest try to let a run go, which failed.
  struct Refusal {
    std::string why;
    absl::Time at;
    absl::Duration pause;        // after it
    bool may_be_let_go = false;  // nobody knows the result
  };
  struct Entry {
    AssignmentPtr run;
    std::string shape;  // what decides whether it fits
    bool held = false;
    std::variant<Launching, Queued, LettingGo, Starting, Placed> state = Queued();
    // The time since which it has been the first of those that wait for nodes.
    std::optional<absl::Time> first_since = {};
    v1::StateReason reason = {};
    std::optional<Refusal> refusal = {};

    template <typename State>
    bool Is() const {
      return std::holds_alternative<State>(state);
    }
    // It stands in order_.
    bool IsInOrder() const { return Is<Launching>() || Is<Queued>(); }
  };
  // Negative priority, job, run key: the order in which runs are asked.
  using Place = std::pair<std::pair<int64_t, uint64_t>, std::string>;
  static Place PlaceOf(const agent::v1::Assignment& run);
  static Entry MakeEntry(AssignmentPtr run, bool held);
  // Null: it is not there.
  Entry* FindLocked(const std::string& run_key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const Entry* FindLocked(const std::string& run_key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether the room of a run that has been let go counts beside what is seen of its pods.
  static bool Counts(const Entry& entry, absl::Time now);
  static bool MayBeLetGo(const Entry& entry) {
    return entry.refusal.has_value() && entry.refusal->may_be_let_go;
  }
  // Returns whether the run is not asked about now, whatever room there is.
  bool StandsAsideLocked(const Entry& entry, absl::Time now) const;
  // Returns whether a run that asks for the same, and found no room at the latest look, still waits
  // before it. Then it gives the same reason.
  bool WaitsBehindAlikeLocked(const std::string& run_key, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Looks at the cluster behind the runs that are starting.
  std::unique_ptr<RoomLeft> LookLocked(absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes the run wait again. Null: it is not there, or has its nodes.
  Entry* WaitAgainLocked(const std::string& run_key, Queued queued)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetWish(const std::string& run_key);
  // Returns the latest wish, or else the hold of Expect or Add.
  bool IsHeldLocked(const std::string& run_key, const Entry& entry) const;

  const Look look_;
  const Clock clock_;
  mutable Mutex mutex_;
  bool is_open_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);  // by run key
  std::map<Place, std::string> order_ ABSL_GUARDED_BY(mutex_);    // waiting runs
  std::optional<Place> resume_
      ABSL_GUARDED_BY(mutex_);  // where the latest call stopped; none: at the end
  std::map<Place, Claim> keepers_
      ABSL_GUARDED_BY(mutex_);  // runs for which the latest call kept room
  // They are by shape: the first run for which the latest call found no room.
  std::map<std::string, Place> first_alike_ ABSL_GUARDED_BY(mutex_);
  std::string behind_ ABSL_GUARDED_BY(mutex_);  // why others are behind one that waits for nodes

  // Taken after mutex_, and never for long: TakeReady has that one while it looks for room.
  mutable Mutex wishes_mutex_;
  std::map<std::string, bool> wishes_
      ABSL_GUARDED_BY(wishes_mutex_);  // whether held, of SetHeld, by run key
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_START_QUEUE_H_
