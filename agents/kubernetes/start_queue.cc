#include "agents/kubernetes/start_queue.h"

#include <set>

#include "agents/kubernetes/manifest.h"
#include "agents/kubernetes/run_secret.h"
#include "contract/run_key.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

// Kinds of runs that find no room before a call ends: each is a search over all nodes.
constexpr size_t kMaxMisfits = 512;
// How long a run that was let go counts for more than what its pods have: the scheduler has found
// nodes for them by then, or they wait in the cluster and hold nothing.
constexpr absl::Duration kStartingCounts = absl::Minutes(1);
// How long a launch that is under way keeps room from those behind it: its few calls take a
// fraction of a second, and one that hangs must not stop the others.
constexpr absl::Duration kLaunchCounts = absl::Seconds(10);

// How long smaller runs may begin on nodes that the first run that waits could be on: so much of
// their time would be lost while it waits for all of them, and it for them without an end.
constexpr absl::Duration kMayBePassed = absl::Minutes(1);

// What decides whether a run fits; runs alike in it need not be asked twice.
std::string ShapeOf(const v1::Assignment& run) {
  v1::Assignment shape;
  v1::JobSpec& spec = *shape.mutable_spec();
  *spec.mutable_resources() = run.spec().resources();
  *spec.mutable_kubernetes() = run.spec().kubernetes();
  spec.mutable_kubernetes()->clear_labels();
  spec.mutable_kubernetes()->clear_annotations();
  spec.mutable_kubernetes()->clear_volumes();
  spec.mutable_placement()->set_pool(run.spec().placement().pool());
  spec.set_nodes(PodCount(run.spec()));
  *shape.mutable_excluded_nodes() = run.excluded_nodes();
  return shape.SerializeAsString();
}

// Why those behind it find no room.
std::string WhoIsFirst(const v1::Assignment& run, const Misfit& misfit) {
  const auto key = contract::RunKey::Parse(run.run_key());
  return fmt::format("job {} is first, and waits for nodes that this one could take: {}",
                     key.ok() ? std::to_string(key->job) : run.run_key(), misfit.words);
}

// The nodes, or the limits of its namespace.
std::string WhatBlocks(const v1::Assignment& run, const Misfit& misfit) {
  return misfit.is_limited ? "namespace " + NamespaceOf(run.spec(), "") : "nodes";
}

}  // namespace

StartQueue::StartQueue(Look look, Clock clock) : look_(std::move(look)), clock_(std::move(clock)) {}

void StartQueue::Open() {
  const std::lock_guard lock(mutex_);
  is_open_ = true;
}

StartQueue::Place StartQueue::PlaceOf(const v1::Assignment& run) {
  const auto key = contract::RunKey::Parse(run.run_key());
  return {{-int64_t{run.spec().priority()}, key.ok() ? key->job : 0}, run.run_key()};
}

bool StartQueue::IsHeldLocked(const std::string& run_key, const Entry& entry) const {
  const std::lock_guard lock(wishes_mutex_);
  const auto wish = wishes_.find(run_key);
  return wish == wishes_.end() ? entry.held : wish->second;
}

StartQueue::Entry StartQueue::MakeEntry(AssignmentPtr run, bool held) {
  Entry entry;
  entry.held = held;
  entry.shape = ShapeOf(*run);
  entry.run = std::move(run);
  return entry;
}

void StartQueue::Expect(AssignmentPtr run, bool held) {
  const std::lock_guard lock(mutex_);
  const std::string run_key = run->run_key();
  if (entries_.contains(run_key)) return;
  order_[PlaceOf(*run)] = run_key;
  Entry& entry = entries_[run_key] = MakeEntry(std::move(run), held);
  entry.launching = true;
  entry.since = clock_();
}

void StartQueue::Add(AssignmentPtr run, bool held) {
  const std::lock_guard lock(mutex_);
  const std::string run_key = run->run_key();
  const auto known = entries_.find(run_key);
  if (known != entries_.end() && !known->second.launching) return;
  order_[PlaceOf(*run)] = run_key;
  entries_[run_key] = MakeEntry(std::move(run), held);
}

void StartQueue::SetHeld(const std::string& run_key, bool held) {
  const std::lock_guard lock(wishes_mutex_);
  wishes_[run_key] = held;
}

void StartQueue::SetStarting(AssignmentPtr run) {
  const std::lock_guard lock(mutex_);
  order_.erase(PlaceOf(*run));
  Entry& entry = entries_[run->run_key()];
  if (!entry.starting) entry = {.run = std::move(run), .starting = true, .since = clock_()};
}

void StartQueue::Remove(const std::string& run_key) {
  const std::lock_guard lock(mutex_);
  {
    const std::lock_guard wishes(wishes_mutex_);
    wishes_.erase(run_key);
  }
  const auto found = entries_.find(run_key);
  if (found == entries_.end()) return;
  order_.erase(PlaceOf(*found->second.run));
  entries_.erase(found);
}

std::vector<StartQueue::AssignmentPtr> StartQueue::TakeReady() {
  const std::lock_guard lock(mutex_);
  std::vector<AssignmentPtr> ready;
  if (!is_open_ || order_.empty()) return ready;
  const absl::Time now = clock_();
  const std::unique_ptr<RoomLeft> room = look_();
  for (const auto& [run_key, entry] : entries_) {
    if (entry.starting && now - entry.since < kStartingCounts) room->Leave({entry.run});
  }
  const std::optional<Place> resume = std::exchange(resume_, std::nullopt);
  const std::set<Place> keepers = std::exchange(keepers_, {});
  std::set<std::string> kept;                  // by what is kept for a run that waits
  std::map<std::string, std::string> misfits;  // shape to reason
  std::string behind;                          // why there is no room behind the first; empty: yet
  for (const auto& [place, run_key] : order_) {
    Entry& entry = entries_[run_key];
    const bool was_asked = resume.has_value() && place < *resume && !keepers.contains(place);
    const bool is_overdue = entry.launching && now - entry.since >= kLaunchCounts;
    if (was_asked || is_overdue || IsHeldLocked(run_key, entry)) continue;
    const auto known = misfits.find(entry.shape);
    if (known != misfits.end()) {
      entry.reason = known->second;
      continue;
    }
    if (misfits.size() >= kMaxMisfits) {
      resume_ = place;
      break;
    }
    std::optional<Misfit> misfit = room->WaitsFor(*entry.run);
    if (!misfit.has_value()) {
      room->Leave({entry.run});
      if (!entry.launching) ready.push_back(entry.run);
      continue;
    }
    if (!behind.empty() && !misfit->is_limited) misfit->words = behind;
    // The first that is blocked keeps what room there is for it, so that smaller ones that come
    // later cannot keep it waiting for ever.
    if (kept.insert(WhatBlocks(*entry.run, *misfit)).second) {
      if (!misfit->is_limited && !entry.first_since.has_value()) entry.first_since = now;
      const bool waited = !misfit->is_limited && now - *entry.first_since >= kMayBePassed;
      room->Leave({entry.run, misfit->is_limited, waited});
      if (waited) behind = WhoIsFirst(*entry.run, *misfit);
      keepers_.insert(place);
    }
    entry.reason = misfits[entry.shape] = std::move(misfit->words);
  }
  for (const AssignmentPtr& run : ready) {
    Entry& entry = entries_[run->run_key()];
    entry.starting = true;
    entry.since = now;
    entry.reason.clear();
    order_.erase(PlaceOf(*run));
  }
  return ready;
}

void StartQueue::Return(const std::string& run_key, std::string why) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(run_key);
  if (found == entries_.end()) return;
  found->second.starting = false;
  found->second.refusal = std::move(why);
  order_[PlaceOf(*found->second.run)] = run_key;
}

std::string StartQueue::ReasonOf(const std::string& run_key) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(run_key);
  if (found == entries_.end()) return "";
  const Entry& entry = found->second;
  return entry.reason.empty() ? entry.refusal : entry.reason;
}

bool StartQueue::IsHeld(const std::string& run_key) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(run_key);
  return found != entries_.end() && IsHeldLocked(run_key, found->second);
}

}  // namespace muster::kubernetes
