// Handles the life of runs.
#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/time/clock.h"
#include "agents/machines/leases.h"
#include "agents/machines/remote/rank_spec.h"
#include "agents/machines/remote/remote_scheduler.h"
#include "agents/machines/run_environment.h"
#include "agents/machines/run_request.h"
#include "agents/machines/verdict.h"
#include "contract/failures.h"
#include "contract/message_of.h"
#include "contract/sentences.h"
#include "contract/states.h"
#include "daemon/log.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

// The part of a run's files that has come to its hosts is told this often, because each telling is
// an event that the broker keeps.
constexpr absl::Duration kFilesReasonInterval = absl::Seconds(5);

bool BringsFiles(const WaitingRun& what) {
  return what.assignment != nullptr && what.assignment->spec().uploads_size() > 0;
}

}  // namespace

// ---- the queue

void RemoteScheduler::Take(WaitingRun run) {
  const std::string run_key = run.run.run_key;
  if (active_.contains(run_key) || AwaitsFiles(run_key) || RefuseMisfit(run)) return;
  if (BringsFiles(run) && TakesFiles()) {
    AwaitFiles(run.run, run.assignment->spec(), /*makes_results=*/false);
  } else {
    PushRun(run.run);
  }
  waiting_.insert_or_assign(run_key, std::move(run));
}

bool RemoteScheduler::TakeWaiting(const std::string& run_key) {
  waiting_.erase(run_key);
  return RemoveWaiting(run_key);
}

// ---- beginnings

absl::Status RemoteScheduler::PlaceRun(const ReadyRun& ready) {
  const std::string& run_key = ready.run.run_key;
  Active run;
  run.allocation = ready.allocation;
  run.latest_end = time_.Now() + ready.run.time_limit;
  for (const NodeAllocation& node : ready.allocation.nodes) {
    const HostEntry& entry = hosts_[node.host];
    const std::string directory = fmt::format("{}/runs/{}", entry.directory, run_key);
    run.placement.push_back({.host = entry.view.config.name,
                             .directory = directory,
                             .node = node,
                             .devices = DeviceNames(entry.view.capacity, node)});
    run.ranks.push_back({.host = entry.view.config.name, .directory = directory});
  }
  // Comes before any host is told: the same hosts are asked again after a crash.
  if (absl::Status s = RecordOf(run_key).Place(run.placement); !s.ok()) return s;
  run.what = std::move(waiting_.at(run_key));
  run.what.run = ready.run;
  waiting_.erase(run_key);
  Active& active = active_.insert_or_assign(run_key, std::move(run)).first->second;
  for (size_t i = 0; i < active.ranks.size(); ++i) {
    hosts_[ready.allocation.nodes[i].host].link->Watch(run_key, active.ranks[i].directory,
                                                       HostStage::kAbsent);
  }
  Advance(&active);
  return absl::OkStatus();
}

void RemoteScheduler::Take(PlacedRun placed) {
  const std::string run_key = placed.what.run.run_key;
  if (active_.contains(run_key)) return;
  Active run;
  run.what = std::move(placed.what);
  run.placement = std::move(placed.placement);
  run.begun = std::move(placed.begun);
  run.last_word = placed.last_word;
  run.cancel_asked = placed.cancel_asked;
  run.forget = !placed.is_wanted;
  run.state = placed.state;
  // An earlier agent may have said so.
  run.silence_told = placed.state > v1::RUN_STATE_PENDING;
  // The rest of a run that was given up is ended, and none of it begins.
  run.ended = contract::IsTerminal(placed.state);
  // The time that the run has run so far is not known here; a longer reservation than needed harms
  // nobody.
  run.latest_end = time_.Now() + run.what.run.time_limit;
  for (size_t i = 0; i < run.placement.size(); ++i) {
    const PlacedRank& place = run.placement[i];
    const HostStage stage = run.begun.contains(i) ? HostStage::kClaimed : HostStage::kAbsent;
    // An earlier agent may have asked the host.
    run.ranks.push_back(
        {.host = place.host, .directory = place.directory, .stage = stage, .start_sent = true});
    // Makes the output of a host that has not answered yet known.
    router_->SetOwner(place.directory, place.host);
    if (const auto refused = placed.refused.find(i); refused != placed.refused.end()) {
      run.ranks.back().refused = refused->second;
      run.ranks.back().refused_at = placed.refused_at;
    }
    const std::optional<size_t> host = FindHost(place.host);
    if (!host.has_value()) continue;
    NodeAllocation node = place.node;
    node.host = static_cast<uint32_t>(*host);
    run.allocation.nodes.push_back(std::move(node));
    hosts_[*host].link->Watch(run_key, place.directory, stage);
  }
  queue_.Restore(run_key, run.allocation, run.latest_end);
  Active& active = active_.insert_or_assign(run_key, std::move(run)).first->second;
  Advance(&active);
  // All of its hosts may have been taken out of the file.
  FinishIfForgotten(run_key);
}

// ---- what can never run

bool RemoteScheduler::RefuseMisfit(const WaitingRun& run) {
  for (const HostEntry& entry : hosts_) {
    if (!entry.view.has_told) return false;
  }
  const std::optional<Misfit> misfit = queue_.ledger().Refusal(run.run.request);
  if (!misfit.has_value()) return false;
  board_->Put(NotStartedVerdict(WitnessOf(run.run.run_key), MisfitFailure(*misfit)));
  return true;
}

void RemoteScheduler::RefuseMisfits() {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const bool is_refused = RefuseMisfit(at->second);
    if (is_refused) RemoveWaiting(at->first);
    at = is_refused ? waiting_.erase(at) : std::next(at);
  }
}

// ---- back to the queue

bool RemoteScheduler::MayBePutBack(const Active& run) const {
  if (run.ended) return false;  // as LOST, by the silence of one of its hosts
  bool is_wanting = false;      // a host that could be asked
  for (const Rank& rank : run.ranks) {
    if (rank.HasBegun() || rank.IsOver() || rank.start_sent || rank.start_under_way) return false;
    const std::optional<size_t> host = FindHost(rank.host);
    is_wanting = is_wanting || !host.has_value() || !hosts_[*host].view.TakesRuns();
  }
  return is_wanting;
}

void RemoteScheduler::PutBackUnsent() {
  std::vector<std::string> run_keys;
  for (const auto& [run_key, run] : active_) {
    if (MayBePutBack(run)) run_keys.push_back(run_key);
  }
  for (const std::string& run_key : run_keys) PutBack(run_key);
}

void RemoteScheduler::PutBack(const std::string& run_key) {
  if (const absl::Status s = RecordOf(run_key).Unplace(); !s.ok()) {
    LogEvent(spdlog::level::warn, "run_not_put_back", {{"run", run_key}, {"error", MessageOf(s)}});
    return;
  }
  const auto found = active_.find(run_key);
  Active run = std::move(found->second);
  active_.erase(found);
  queue_.Release(run_key);
  for (const Rank& rank : run.ranks) {
    if (const auto host = FindHost(rank.host)) hosts_[*host].link->Unwatch(run_key);
  }
  if (!run.forget) board_->Put(PendingVerdict(WitnessOf(run_key)));
  Take(std::move(run.what));
  if (run.cancel_asked) OnCancel(run_key);
  if (run.forget) OnForget(run_key);
}

// ---- steps

void RemoteScheduler::Advance(Active* run) {
  const bool must_end = run->cancel_asked || run->forget || run->ended ||
                        std::any_of(run->ranks.begin(), run->ranks.end(), HasFailed);
  for (size_t i = 0; i < run->ranks.size(); ++i) {
    if (run->ranks[i].IsOver()) continue;
    const std::optional<size_t> host = FindHost(run->ranks[i].host);
    if (!host.has_value() || !hosts_[*host].view.is_up) continue;
    if (must_end) {
      StopRank(run, i, &hosts_[*host]);
    } else if (!run->ranks[i].HasBegun()) {
      StartRank(run, i, &hosts_[*host]);
    }
  }
  if (!IsSettled(*run)) {
    if (run->ended || run->forget) return LeaveBehind(run);
    return SayProgress(run);
  }
  if (std::exchange(run->over, true)) return;
  const std::string& run_key = run->what.run.run_key;
  queue_.Release(run_key);
  for (const Rank& rank : run->ranks) {
    if (const auto host = FindHost(rank.host)) hosts_[*host].link->Unwatch(run_key);
  }
  if (std::exchange(run->ended, true) || run->forget) return;
  const bool leaves_processes =
      std::any_of(run->ranks.begin(), run->ranks.end(),
                  [](const Rank& rank) { return rank.exit.has_value() && rank.exit->left_behind; });
  board_->Put(GangEnd(run_key, run->ranks, run->cancel_asked, absl::Now()), leaves_processes);
}

bool RemoteScheduler::IsSettled(const Active& run) const {
  const bool is_given_up = run.ended || run.forget;
  return std::all_of(run.ranks.begin(), run.ranks.end(), [&](const Rank& rank) {
    return rank.IsOver() || (is_given_up && !FindHost(rank.host).has_value());
  });
}

void RemoteScheduler::StartRank(Active* run, size_t rank, HostEntry* host) {
  if (starts_held_ || std::exchange(run->ranks[rank].start_under_way, true)) return;
  absl::StatusOr<RankStart> start = DescribeStart(*run, rank);
  if (start.ok()) return host->link->Start(*std::move(start));
  run->ranks[rank].start_under_way = false;
  LogEvent(spdlog::level::warn, "rank_not_started",
           {{"run", run->what.run.run_key}, {"reason", MessageOf(start.status())}});
  // It may be there already: whether it is, the host says once it has been told to end it.
  if (run->ranks[rank].start_sent) return StopRank(run, rank, host);
  Refuse(run, rank,
         absl::IsInvalidArgument(start.status())
             ? MakeFailure(v1::FAILURE_CODE_JOB_INVALID, v1::FAILURE_CLASS_CONFIG,
                           {.detail = MessageOf(start.status())})
             : MakeFailure(v1::FAILURE_CODE_LAUNCH_FAILED, v1::FAILURE_CLASS_INFRA,
                           {.detail = MessageOf(start.status()),
                            .cause = contract::FailureCause::kHostUnfit}));
}

void RemoteScheduler::Refuse(Active* run, size_t rank, v1::Failure failure) {
  run->ranks[rank].refused = std::move(failure);
  run->ranks[rank].refused_at = absl::Now();
  std::map<size_t, v1::Failure> refused;
  for (size_t i = 0; i < run->ranks.size(); ++i) {
    if (run->ranks[i].refused.has_value()) refused[i] = *run->ranks[i].refused;
  }
  const absl::Status written = RecordOf(run->what.run.run_key).SetRefused(refused);
  // The others' end has no better reason after a restart then.
  if (!written.ok()) {
    LogEvent(spdlog::level::warn, "refusal_not_recorded",
             {{"run", run->what.run.run_key}, {"error", MessageOf(written)}});
  }
}

absl::StatusOr<RankStart> RemoteScheduler::DescribeStart(const Active& run, size_t rank) const {
  if (run.what.assignment == nullptr) {
    return absl::DataLossError(fmt::format("the agent's record of the job, \"{}\", is damaged",
                                           RecordOf(run.what.run.run_key).path()));
  }
  std::vector<std::string> addresses;
  for (const Rank& other : run.ranks) {
    const std::optional<size_t> host = FindHost(other.host);
    addresses.push_back(host.has_value() ? hosts_[*host].view.config.address : other.host);
  }
  const std::string& directory = run.ranks[rank].directory;
  const absl::StatusOr<agent::v1::Assignment> own =
      OnHost(*run.what.assignment, options_.cluster, directory);
  if (!own.ok()) return own.status();
  const NodeAllocation& node = run.placement[rank].node;
  const Capacity& capacity = hosts_[*FindHost(run.ranks[rank].host)].view.capacity;
  const ContainerRuntime& containers = hosts_[*FindHost(run.ranks[rank].host)].view.containers;
  if (const std::optional<Misfit> misfit = CheckImage(own->spec(), containers)) {
    return absl::FailedPreconditionError(
        fmt::format("host {}: {}; {}", run.ranks[rank].host, misfit->why, RemedyOf(*misfit)));
  }
  RunRules rules = options_.rules;
  rules.container_tool = containers.tool;
  if (absl::Status s = CheckDevices(run.placement[rank], capacity); !s.ok()) return s;
  RunSpec spec = RankSpec(*own, options_.cluster, directory, rank, addresses, rules);
  if (agents::KeepsLease(*own)) spec.lease_file = LeaseFileFor(directory, options_.lease_name());
  return RankStart{.run_key = run.what.run.run_key,
                   .rank = rank,
                   .directory = directory,
                   .devices = DevicesText(node),
                   .device_variables = DeviceVariables(capacity, node),
                   .spec = std::move(spec),
                   .job = std::make_shared<v1::JobSpec>(own->spec())};
}

void RemoteScheduler::StopRank(Active* run, size_t rank, HostEntry* host) {
  Rank& own = run->ranks[rank];
  if (own.stop_told || std::exchange(own.stop_under_way, true)) return;
  host->link->Stop(run->what.run.run_key, rank, own.directory);
}

void RemoteScheduler::NoteBegun(Active* run, size_t rank) {
  if (!run->begun.insert(rank).second) return;
  const absl::Status written = RecordOf(run->what.run.run_key).SetBegun(run->begun);
  // The host's own record keeps the rank from being started twice all the same.
  if (!written.ok()) {
    LogEvent(spdlog::level::warn, "begin_not_recorded",
             {{"run", run->what.run.run_key}, {"error", MessageOf(written)}});
  }
}

bool RemoteScheduler::IsWaitingForFiles(const Active& run) const {
  return BringsFiles(run.what) && run.state <= v1::RUN_STATE_PENDING &&
         std::none_of(run.ranks.begin(), run.ranks.end(),
                      [](const Rank& rank) { return rank.HasBegun() || rank.start_sent; });
}

v1::StateReason RemoteScheduler::FilesReasonOf(const Active& run) const {
  std::vector<std::string> hosts;
  uint64_t bytes = 0;
  uint64_t each = 0;  // what a rank has of them
  for (size_t i = 0; i < run.ranks.size(); ++i) {
    const Rank& rank = run.ranks[i];
    const std::optional<size_t> host = FindHost(rank.host);
    if (!host.has_value() || rank.HasBegun() || rank.IsOver()) continue;
    const auto sent = hosts_[*host].link->LayoutOf(run.what.run.run_key, i);
    if (rank.start_under_way && !sent.has_value()) continue;  // they are there
    hosts.push_back(rank.host);
    bytes += sent.value_or(FilesSent()).bytes;
    each = std::max(each, sent.value_or(FilesSent()).of);
  }
  return CopyingReason(hosts, bytes + each * (run.ranks.size() - hosts.size()),
                       each * run.ranks.size());
}

void RemoteScheduler::RenewFilesReasons() {
  if (time_.Now() < next_files_reasons_) return;
  next_files_reasons_ = time_.Now() + kFilesReasonInterval;
  for (auto& [run_key, run] : active_) {
    if (!run.files_reason.has_value() || run.ended || run.forget) continue;
    run.files_reason = FilesReasonOf(run);
    SayProgress(&run);
  }
}

void RemoteScheduler::SayProgress(Active* run) {
  if (run->state < v1::RUN_STATE_RUNNING && BringsFiles(run->what) && !run->files_reason)
    run->files_reason = FilesReasonOf(*run);
  // It may yet be put back, and stays what it was for people: a run that waits.
  if (IsWaitingForFiles(*run)) {
    run->state = v1::RUN_STATE_PENDING;
    return board_->SetOwnReason(run->what.run.run_key, run->files_reason.value_or(FetchesFiles()));
  }
  absl::Time since;
  const std::optional<v1::StateReason> silence = SilenceOf(*run, &since);
  const std::string& run_key = run->what.run.run_key;
  agents::Observation progress =
      GangProgress(run_key, run->ranks, silence.has_value() ? since : absl::Now());
  // The hosts have yet to say again after a restart what is known already.
  progress.state = std::max(progress.state, run->state);
  // The broker keeps a reason until it hears another one, and of several words that follow each
  // other at once it may hear the last only.
  if (run->silence_told) progress.reason = contract::MakeReason(v1::STATE_REASON_CODE_HOST_ANSWERS);
  run->silence_told = run->silence_told || silence.has_value();
  if (progress.state >= v1::RUN_STATE_RUNNING) run->files_reason.reset();
  if (run->files_reason.has_value()) progress.reason = *run->files_reason;
  if (silence.has_value()) progress.reason = *silence;
  ProgressFacts facts = FactsOf(progress.reason, run->ranks);
  if (progress.state == run->state && facts == run->told) return;
  run->state = progress.state;
  run->told = std::move(facts);
  silence.has_value() ? board_->PutSilent(progress) : board_->Put(progress);
}

void RemoteScheduler::LeaveBehind(Active* run) {
  Allocation rest;
  for (size_t i = 0; i < run->ranks.size(); ++i) {
    if (run->ranks[i].IsOver()) continue;
    const std::optional<size_t> host = FindHost(run->ranks[i].host);
    if (!host.has_value()) continue;
    if (hosts_[*host].view.is_up) return;
    rest.nodes.push_back(run->placement[i].node);
    rest.nodes.back().host = static_cast<uint32_t>(*host);
  }
  if (std::exchange(run->left_behind, true) && rest == run->allocation) return;
  const std::string& run_key = run->what.run.run_key;
  queue_.Release(run_key);
  run->allocation = std::move(rest);
  run->latest_end = absl::InfiniteFuture();
  queue_.Restore(run_key, run->allocation, run->latest_end);
}

}  // namespace muster::machines
