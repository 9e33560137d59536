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
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "agents/kubernetes/cluster/obstacle.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::kubernetes {

class StartQueue {
 public:
  using AssignmentPtr = std::shared_ptr<const agent::v1::Assignment>;
  using Look = std::function<std::unique_ptr<RoomLeft>()>;

  using Clock = std::function<absl::Time()>;
  // `look` is called once in each TakeReady that has somebody to ask for. Nothing is ready before
  // Open.
  explicit StartQueue(Look look, Clock clock = absl::Now);
  void Open();
  bool is_open() const;

  // Its launch has begun: it keeps its place, and the room that there is for it, so that a later
  // run whose launch ends earlier does not go first. For kLaunchCounts, and until Add or Remove.
  void Expect(AssignmentPtr run, bool held);
  // The run waits from now on; nothing happens to one that waits already.
  void Add(AssignmentPtr run, bool held);
  // The latest wish counts for more than what Expect and Add say, also if it came before them.
  // Returns at once, whoever is asked for room meanwhile.
  void SetHeld(const std::string& run_key, bool held);
  // The run has been let go, by whomever, and its pods are not on nodes yet.
  void SetStarting(AssignmentPtr run);
  // Its pods are on their nodes, as far as is known of the run. Its room counts for kPlacedCounts
  // more, as what tells of nodes may not know that yet. Its wishes are forgotten.
  void SetPlaced(const std::string& run_key);
  // It is over. Its wishes are forgotten.
  void Remove(const std::string& run_key);

  // The runs that may start now, higher priorities and then older jobs first. The first that finds
  // no room on the nodes keeps the room that there is, and in each namespace the first that the
  // limits hold back keeps its share of them; others behind it may pass in the room that it does
  // not need, and for kMayBePassed in room that it cannot use yet. A run that could not start if
  // Muster's runs had all ended is no such first, or not for longer. Each run is returned once,
  // runs that could not be let go before after the others, and counts as starting. If very many
  // kinds of runs find no room, each call asks about some of them, and the next goes on from there.
  // `only`: that run alone, if it is ready; empty: all.
  std::vector<AssignmentPtr> TakeReady(const std::string& only = "");
  // It could not be let go, and why. It is not ready again before a pause, of kFirstPause and then
  // twice as long each time up to kLongestPause, and leaves its room to others meanwhile.
  // `may_be_let_go`: the server may have done it all the same, until SetAsked.
  void Return(const std::string& run_key, std::string why, bool may_be_let_go = false);
  // Returns whether nobody knows if it was let go.
  bool MayBeLetGo(const std::string& run_key) const;
  // The server has said whether it was, and everybody knows.
  void SetAsked(const std::string& run_key);
  // Nobody has tried to let it go: it is not ready again before kFirstPause.
  void Postpone(const std::string& run_key);
  // Nobody has tried to let it go, because it is held: it is ready as soon as it may be.
  void PutBack(const std::string& run_key);
  // It has been let go. For each run that TakeReady returns, the caller calls this, one of the
  // three above, or Remove.
  void SetLetGo(const std::string& run_key);
  // TakeReady has told of it, and nothing has been said since.
  bool IsBeingLetGo(const std::string& run_key) const;
  // Its Job, which had been let go, waits again, and has no pods on nodes: it is ready as soon as
  // it may be.
  void TakeBack(const std::string& run_key);

  // Why a run of this need and priority that came last would wait; nothing: it would not, or what
  // would tell is not known. Its run key counts for nothing.
  std::optional<Misfit> WouldWait(const agent::v1::Assignment& run) const;
  // Returns the runs that wait, in any order; held ones, too.
  std::vector<AssignmentPtr> Waiting() const;

  // Why it waits; without a code: it does not, or nobody has looked yet.
  v1::StateReason ReasonOf(const std::string& run_key) const;
  // It is to be held, as far as the queue has been told.
  bool IsHeld(const std::string& run_key) const;
  // It is to be held, and nobody is letting it go or may have done so: it stays until its release.
  bool IsKeptBack(const std::string& run_key) const;
  // The latest wish, since the last Remove; nothing: none.
  std::optional<bool> WishOf(const std::string& run_key) const;

 private:
  struct Entry {
    AssignmentPtr run = {};
    bool held = false;
    bool launching = false;  // Expect, and no Add yet
    bool starting = false;
    bool being_let_go = false;   // starting, and the server has not answered
    bool may_be_let_go = false;  // nobody knows the result of the last try
    bool placed = false;         // starting, and its pods are on their nodes
    absl::Time since = {};       // launching, starting, placed
    // When it was first the one that waits for nodes before all others.
    std::optional<absl::Time> first_since = {};
    v1::StateReason reason = {};
    std::string refusal = {};  // why it could not be let go the last time
    absl::Time refused_at = absl::InfinitePast();
    absl::Duration pause = {};                     // after that
    absl::Time not_before = absl::InfinitePast();  // it is not ready
    std::string shape = {};                        // what decides whether it fits
  };
  // Negative priority, job, run key: the order in which runs are asked.
  using Place = std::pair<std::pair<int64_t, uint64_t>, std::string>;
  static Place PlaceOf(const agent::v1::Assignment& run);
  static Entry MakeEntry(AssignmentPtr run, bool held);
  // Takes what it needs for those that start.
  void LeaveStartingLocked(absl::Time now, RoomLeft* room) const;
  // Null: it is not there, or has its nodes.
  Entry* WaitAgainLocked(const std::string& run_key, absl::Time not_before);
  void ForgetWish(const std::string& run_key);
  // Returns the hold that is wished, or else the hold of Expect or Add.
  bool IsHeldLocked(const std::string& run_key, const Entry& entry) const;

  const Look look_;
  const Clock clock_;
  mutable std::mutex mutex_;
  bool is_open_ = false;
  std::map<std::string, Entry> entries_;  // by run key
  std::map<Place, std::string> order_;    // of those that wait
  std::optional<Place> resume_;           // where the latest call stopped; none: at the end
  std::map<Place, Claim> keepers_;        // for which it kept what there was
  std::string behind_;                    // why others are behind one that waits for nodes

  // Taken after mutex_, and never for long: TakeReady has that one while it looks for room.
  mutable std::mutex wishes_mutex_;
  std::map<std::string, bool> wishes_;  // whether held, of SetHeld, by run key; by wishes_mutex_
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_START_QUEUE_H_
