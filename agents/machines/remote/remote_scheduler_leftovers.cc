// Has hosts remove the files of runs that nobody wants any more.
#include <utility>

#include "agents/machines/remote/remote_scheduler.h"
#include "agents/machines/work_sweeper.h"
#include "daemon/log.h"

namespace muster::machines {
namespace {

// Runs of hosts that do not clean up after them: a few kilobytes each, here and on the agent's
// disk.
constexpr size_t kMaxCleaningRuns = 100'000;

}  // namespace

void RemoteScheduler::FinishIfForgotten(const std::string& run_key) {
  const auto found = active_.find(run_key);
  if (found == active_.end() || !found->second.forget || !found->second.over) return;
  FinishedRun run = {.run_key = run_key, .placement = std::move(found->second.placement)};
  active_.erase(found);
  for (const PlacedRank& rank : run.placement) router_->RemoveOwner(rank.directory);
  Clean(std::move(run));
}

void RemoteScheduler::Clean(FinishedRun run) {
  const std::string run_key = run.run_key;
  std::set<std::string> hosts;
  for (const PlacedRank& rank : run.placement) {
    const std::optional<size_t> host = FindHost(rank.host);
    if (!host.has_value() && cleaning_.size() >= kMaxCleaningRuns) {
      LogEvent(spdlog::level::warn, "run_left_behind", {{"run", run_key}, {"host", rank.host}});
      continue;
    }
    hosts.insert(rank.host);
    if (host.has_value()) hosts_[*host].link->Clean(rank.directory, /*logs=*/false);
  }
  cleaning_[run_key] = {.run = std::move(run), .hosts = std::move(hosts)};
  CleanedOn("", run_key);
}

void RemoteScheduler::CleanedOn(const std::string& host, const std::string& run_key) {
  const auto found = cleaning_.find(run_key);
  if (found == cleaning_.end()) return;
  found->second.hosts.erase(host);
  if (!found->second.hosts.empty()) return;
  RecordOf(run_key).RemoveBookkeeping();
  finished_.push_back(std::move(found->second.run));
  cleaning_.erase(found);
  PruneFinished();
}

void RemoteScheduler::TakeUpLeftovers(const std::string& host) {
  std::vector<FinishedRun> runs;
  for (const auto& [run_key, cleaning] : cleaning_) {
    if (cleaning.hosts.contains(host)) runs.push_back(cleaning.run);
  }
  for (FinishedRun& run : runs) {
    cleaning_.erase(run.run_key);
    // Processes of the run that still live there are ended.
    PlacedRun placed;
    placed.what.run.run_key = run.run_key;
    placed.placement = std::move(run.placement);
    placed.is_wanted = false;
    Take(std::move(placed));
  }
}

void RemoteScheduler::PruneFinished() {
  while (finished_.size() > options_.keep_finished_runs) {
    const FinishedRun run = std::move(finished_.front());
    finished_.pop_front();
    std::set<std::string>& hosts = pruning_[run.run_key];
    for (const PlacedRank& rank : run.placement) {
      const std::optional<size_t> host = FindHost(rank.host);
      if (!host.has_value()) continue;
      hosts.insert(rank.host);
      hosts_[*host].link->Clean(rank.directory, /*logs=*/true);
    }
    PrunedOn("", run.run_key);
  }
}

void RemoteScheduler::SweepHosts() {
  if (time_.Now() < next_sweep_) return;
  next_sweep_ = time_.Now() + SweepInterval(options_.keep_work);
  for (HostEntry& entry : hosts_) entry.link->Sweep();
}

void RemoteScheduler::PrunedOn(const std::string& host, const std::string& run_key) {
  const auto found = pruning_.find(run_key);
  if (found == pruning_.end()) return;
  found->second.erase(host);
  if (!found->second.empty()) return;
  RecordOf(run_key).Remove();
  pruning_.erase(found);
}

}  // namespace muster::machines
