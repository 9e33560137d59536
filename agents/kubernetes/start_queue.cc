#include "agents/kubernetes/start_queue.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "agents/kubernetes/manifest/manifest.h"
#include "agents/kubernetes/manifest/run_secret.h"
#include "contract/run_key.h"
#include "contract/sentences.h"
#include "fmt/format.h"
#include "sync/mutex.h"

namespace muster::kubernetes {
namespace {

// A call ends after this many kinds of runs have found no room, because each costs a search over
// all nodes.
constexpr size_t kMaxMisfits = 512;
// A run that was let go counts for more than its pods have during this time: the scheduler has
// found nodes for them by then, or they wait in the cluster and hold nothing.
constexpr absl::Duration kStartingCounts = absl::Minutes(1);
// A run whose pods are on their nodes counts for more than is seen on the nodes for this long,
// because the watches of one server are moments apart.
constexpr absl::Duration kPlacedCounts = absl::Seconds(10);
// A run that could not be let go is tried again after these pauses: a server that is back is
// noticed soon, and one that refuses for hours is asked about each run only now and then.
constexpr absl::Duration kFirstPause = absl::Seconds(1);
constexpr absl::Duration kLongestPause = absl::Seconds(30);
// A launch under way keeps room from those behind it for this long: its few calls take a fraction
// of a second, and one that hangs must not stop the others.
constexpr absl::Duration kLaunchCounts = absl::Seconds(10);

// Smaller runs may begin for this long on nodes that the first run that waits could be on: so much
// of the nodes' time would be lost while it waits for all of them, and it would wait for the
// smaller ones without an end.
constexpr absl::Duration kMayBePassed = absl::Minutes(1);

// Returns the part of a run that decides whether it fits; runs with the same part are asked about
// once.
std::string ShapeOf(const agent::v1::Assignment& run) {
  agent::v1::Assignment shape;
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

// Returns the reason that those behind it find no room.
std::string WhoIsFirst(const agent::v1::Assignment& run, const Misfit& misfit) {
  const auto key = contract::RunKey::Parse(run.run_key());
  return fmt::format("job {} is first, and waits for nodes that this one could take: {}",
                     key.ok() ? std::to_string(key->job) : run.run_key(), misfit.words);
}

v1::StateReason ReasonFor(const Misfit& misfit) {
  const v1::StateReasonCode code = misfit.is_limited  ? v1::STATE_REASON_CODE_LIMIT_REACHED
                                   : misfit.is_behind ? v1::STATE_REASON_CODE_WAITS_FOR_TURN
                                                      : v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES;
  return contract::MakeReason(code, {.detail = misfit.words});
}

// Returns the nodes, or the limits of its namespace.
std::string WhatBlocks(const agent::v1::Assignment& run, const Misfit& misfit) {
  return misfit.is_limited ? "namespace " + NamespaceOf(run.spec(), "") : "nodes";
}

}  // namespace

StartQueue::StartQueue(Look look, Clock clock) : look_(std::move(look)), clock_(std::move(clock)) {}

void StartQueue::Open() {
  const MutexLock lock(mutex_);
  is_open_ = true;
}

bool StartQueue::is_open() const {
  const MutexLock lock(mutex_);
  return is_open_;
}

StartQueue::Place StartQueue::PlaceOf(const agent::v1::Assignment& run) {
  const auto key = contract::RunKey::Parse(run.run_key());
  return {{-int64_t{run.spec().priority()}, key.ok() ? key->job : 0}, run.run_key()};
}

bool StartQueue::IsHeldLocked(const std::string& run_key, const Entry& entry) const {
  return WishOf(run_key).value_or(entry.held);
}

std::optional<bool> StartQueue::WishOf(const std::string& run_key) const {
  const MutexLock lock(wishes_mutex_);
  const auto wish = wishes_.find(run_key);
  return wish == wishes_.end() ? std::nullopt : std::optional(wish->second);
}

StartQueue::Entry StartQueue::MakeEntry(AssignmentPtr run, bool held) {
  std::string shape = ShapeOf(*run);
  return {.run = std::move(run), .shape = std::move(shape), .held = held};
}

StartQueue::Entry* StartQueue::FindLocked(const std::string& run_key) {
  const auto found = entries_.find(run_key);
  return found == entries_.end() ? nullptr : &found->second;
}

const StartQueue::Entry* StartQueue::FindLocked(const std::string& run_key) const {
  const auto found = entries_.find(run_key);
  return found == entries_.end() ? nullptr : &found->second;
}

bool StartQueue::Counts(const Entry& entry, absl::Time now) {
  if (const auto* letting_go = std::get_if<LettingGo>(&entry.state))
    return now - letting_go->since < kStartingCounts;
  if (const auto* starting = std::get_if<Starting>(&entry.state))
    return now - starting->since < kStartingCounts;
  const auto* placed = std::get_if<Placed>(&entry.state);
  return placed != nullptr && now - placed->since < kPlacedCounts;
}

bool StartQueue::StandsAsideLocked(const Entry& entry, absl::Time now) const {
  const auto* launching = std::get_if<Launching>(&entry.state);
  if (launching != nullptr && now - launching->since >= kLaunchCounts) return true;
  const auto* queued = std::get_if<Queued>(&entry.state);
  const bool pauses =
      queued != nullptr && queued->not_before.has_value() && now < *queued->not_before;
  return pauses || IsHeldLocked(entry.run->run_key(), entry);
}

void StartQueue::Expect(AssignmentPtr run, bool held) {
  const MutexLock lock(mutex_);
  const std::string run_key = run->run_key();
  if (FindLocked(run_key) != nullptr) return;
  order_[PlaceOf(*run)] = run_key;
  Entry& entry = entries_[run_key] = MakeEntry(std::move(run), held);
  entry.state = Launching{clock_()};
}

void StartQueue::Add(AssignmentPtr run, bool held) {
  const MutexLock lock(mutex_);
  const std::string run_key = run->run_key();
  const Entry* known = FindLocked(run_key);
  if (known != nullptr && !known->Is<Launching>()) return;
  order_[PlaceOf(*run)] = run_key;
  entries_[run_key] = MakeEntry(std::move(run), held);
}

void StartQueue::SetHeld(const std::string& run_key, bool held) {
  const MutexLock lock(wishes_mutex_);
  wishes_[run_key] = held;
}

void StartQueue::SetStarting(AssignmentPtr run) {
  const MutexLock lock(mutex_);
  order_.erase(PlaceOf(*run));
  Entry& entry = entries_[run->run_key()];
  if (entry.Is<LettingGo>() || entry.Is<Starting>()) return;
  entry = MakeEntry(std::move(run), /*held=*/false);
  entry.state = Starting{clock_()};
}

void StartQueue::SetPlaced(const std::string& run_key) {
  const MutexLock lock(mutex_);
  ForgetWish(run_key);
  Entry* entry = FindLocked(run_key);
  if (entry == nullptr || entry->Is<Placed>()) return;
  order_.erase(PlaceOf(*entry->run));
  entry->state = Placed{clock_()};
}

void StartQueue::ForgetWish(const std::string& run_key) {
  const MutexLock lock(wishes_mutex_);
  wishes_.erase(run_key);
}

void StartQueue::Remove(const std::string& run_key) {
  const MutexLock lock(mutex_);
  ForgetWish(run_key);
  const Entry* entry = FindLocked(run_key);
  if (entry == nullptr) return;
  order_.erase(PlaceOf(*entry->run));
  entries_.erase(run_key);
}

std::unique_ptr<RoomLeft> StartQueue::LookLocked(absl::Time now) const {
  std::map<std::string_view, Alike> starting;
  for (const auto& [run_key, entry] : entries_) {
    if (Counts(entry, now)) starting[entry.shape].push_back(entry.run);
  }
  std::vector<Alike> kinds;
  for (auto& [shape, runs] : starting) kinds.push_back(std::move(runs));
  return look_(kinds);
}

bool StartQueue::WaitsBehindAlikeLocked(const std::string& run_key, absl::Time now) {
  Entry* entry = FindLocked(run_key);
  if (entry == nullptr) return false;
  const auto first = first_alike_.find(entry->shape);
  if (first == first_alike_.end() || !(first->second < PlaceOf(*entry->run))) return false;
  const auto place = order_.find(first->second);
  if (place == order_.end()) return false;
  const Entry& alike = entries_.at(place->second);
  if (StandsAsideLocked(alike, now)) return false;
  entry->reason = alike.reason;
  return true;
}

std::vector<StartQueue::AssignmentPtr> StartQueue::TakeReady(const std::string& only) {
  const MutexLock lock(mutex_);
  std::vector<AssignmentPtr> ready;
  const absl::Time now = clock_();
  if (WaitsBehindAlikeLocked(only, now)) return ready;
  first_alike_.clear();
  const std::map<Place, Claim> keepers = std::exchange(keepers_, {});
  behind_.clear();
  if (!is_open_ || order_.empty()) return ready;
  std::erase_if(entries_, [&](const auto& item) {
    return item.second.template Is<Placed>() && !Counts(item.second, now);
  });
  const std::unique_ptr<RoomLeft> room = LookLocked(now);
  const std::optional<Place> resume = std::exchange(resume_, std::nullopt);
  std::set<std::string> kept;                      // by what is kept for a run that waits
  std::map<std::string, v1::StateReason> misfits;  // by shape
  for (const auto& [place, run_key] : order_) {
    Entry& entry = entries_[run_key];
    const bool was_asked = resume.has_value() && place < *resume && !keepers.contains(place);
    if (was_asked || StandsAsideLocked(entry, now)) continue;
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
      if (entry.Is<Queued>() && (only.empty() || only == run_key)) ready.push_back(entry.run);
      continue;
    }
    if (misfit->is_behind) misfit->words = behind_;
    // The first that is blocked keeps what room there is for it, so that smaller ones that come
    // later cannot keep it waiting for ever. A run that waiting does not help keeps no room.
    const std::string what = WhatBlocks(*entry.run, *misfit);
    if (!misfit->is_final && !kept.contains(what)) {
      if (!misfit->is_limited && !entry.first_since.has_value()) entry.first_since = now;
      const bool waited = !misfit->is_limited && now - *entry.first_since >= kMayBePassed;
      const Claim claim = {entry.run, misfit->is_limited, waited};
      if (room->Leave(claim)) {
        if (waited) behind_ = WhoIsFirst(*entry.run, *misfit);
        kept.insert(what);
        keepers_[place] = claim;
      }
    }
    entry.reason = misfits[entry.shape] = ReasonFor(*misfit);
    first_alike_[entry.shape] = place;
  }
  // Runs that are refused again and again do not keep the others from being tried.
  const auto refused_at = [this](const AssignmentPtr& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::optional<Refusal>& refusal = entries_[run->run_key()].refusal;
    return refusal.has_value() ? refusal->at : absl::InfinitePast();
  };
  std::stable_sort(ready.begin(), ready.end(),
                   [&](const auto& a, const auto& b) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                     return refused_at(a) < refused_at(b);
                   });
  for (const AssignmentPtr& run : ready) {
    Entry& entry = entries_[run->run_key()];
    entry.state = LettingGo{now};
    entry.reason.Clear();
    order_.erase(PlaceOf(*run));
  }
  return ready;
}

std::optional<Misfit> StartQueue::WouldWait(const agent::v1::Assignment& run) const {
  const MutexLock lock(mutex_);
  const std::unique_ptr<RoomLeft> room = LookLocked(clock_());
  for (const auto& [place, claim] : keepers_) {
    if (place.first.first <= PlaceOf(run).first.first) room->Leave(claim);
  }
  std::optional<Misfit> misfit = room->WaitsFor(run);
  if (misfit.has_value() && misfit->is_behind) misfit->words = behind_;
  return misfit;
}

std::vector<StartQueue::AssignmentPtr> StartQueue::Waiting() const {
  const MutexLock lock(mutex_);
  std::vector<AssignmentPtr> waiting;
  for (const auto& [place, run_key] : order_) waiting.push_back(entries_.at(run_key).run);
  return waiting;
}

StartQueue::Entry* StartQueue::WaitAgainLocked(const std::string& run_key, Queued queued) {
  Entry* entry = FindLocked(run_key);
  // A run that has its nodes was let go, whatever became of the answer.
  if (entry == nullptr || entry->Is<Placed>()) return nullptr;
  entry->state = queued;
  order_[PlaceOf(*entry->run)] = run_key;
  return entry;
}

void StartQueue::Return(const std::string& run_key, std::string why, bool may_be_let_go) {
  const MutexLock lock(mutex_);
  const absl::Time now = clock_();
  Entry* entry = WaitAgainLocked(run_key, {});
  if (entry == nullptr) return;
  absl::Duration pause = kFirstPause;
  if (entry->refusal.has_value()) pause = std::min(2 * entry->refusal->pause, kLongestPause);
  entry->refusal = {std::move(why), now, pause, may_be_let_go};
  entry->state = Queued{now + pause};
}

void StartQueue::Postpone(const std::string& run_key) {
  const MutexLock lock(mutex_);
  WaitAgainLocked(run_key, {clock_() + kFirstPause});
}

void StartQueue::PutBack(const std::string& run_key) {
  const MutexLock lock(mutex_);
  WaitAgainLocked(run_key, {});
}

void StartQueue::SetLetGo(const std::string& run_key) {
  const MutexLock lock(mutex_);
  Entry* entry = FindLocked(run_key);
  const auto* letting_go = entry == nullptr ? nullptr : std::get_if<LettingGo>(&entry->state);
  if (letting_go != nullptr) entry->state = Starting{letting_go->since};
}

bool StartQueue::IsBeingLetGo(const std::string& run_key) const {
  const MutexLock lock(mutex_);
  const Entry* entry = FindLocked(run_key);
  return entry != nullptr && entry->Is<LettingGo>();
}

void StartQueue::TakeBack(const std::string& run_key) {
  const MutexLock lock(mutex_);
  Entry* entry = FindLocked(run_key);
  if (entry == nullptr || entry->IsInOrder()) return;
  entry->state = Starting{};  // whatever nodes it had
  WaitAgainLocked(run_key, {});
}

v1::StateReason StartQueue::ReasonOf(const std::string& run_key) const {
  const MutexLock lock(mutex_);
  const Entry* entry = FindLocked(run_key);
  if (entry == nullptr) return {};
  const bool is_said = entry->reason.code() != v1::STATE_REASON_CODE_UNSPECIFIED;
  if (is_said || !entry->refusal.has_value()) return entry->reason;
  return contract::MakeReason(v1::STATE_REASON_CODE_AGENT_RETRIES, {.detail = entry->refusal->why});
}

bool StartQueue::IsHeld(const std::string& run_key) const {
  const MutexLock lock(mutex_);
  const Entry* entry = FindLocked(run_key);
  return entry != nullptr && IsHeldLocked(run_key, *entry);
}

bool StartQueue::IsKeptBack(const std::string& run_key) const {
  const MutexLock lock(mutex_);
  const Entry* entry = FindLocked(run_key);
  return entry != nullptr && entry->IsInOrder() && !MayBeLetGo(*entry) &&
         IsHeldLocked(run_key, *entry);
}

bool StartQueue::MayBeLetGo(const std::string& run_key) const {
  const MutexLock lock(mutex_);
  const Entry* entry = FindLocked(run_key);
  return entry != nullptr && MayBeLetGo(*entry);
}

void StartQueue::SetAsked(const std::string& run_key) {
  const MutexLock lock(mutex_);
  Entry* entry = FindLocked(run_key);
  if (entry != nullptr && entry->refusal.has_value()) entry->refusal->may_be_let_go = false;
}

}  // namespace muster::kubernetes
