// Handles the reports of hosts, and hosts that do not report.
#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "agents/machines/remote/remote_scheduler.h"
#include "agents/machines/verdict.h"
#include "contract/failures.h"
#include "contract/issues.h"
#include "contract/message_of.h"
#include "contract/sentences.h"
#include "daemon/log.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

// Hosts are added and cordoned by hand; nobody waits for it longer than this.
constexpr absl::Duration kFileInterval = absl::Seconds(5);
// These are the pauses after a start that a host could not make, as with a full disk. The first is
// short, for a trouble that passes by itself; the longest is the time that a mended host may stay
// without runs.
constexpr absl::Duration kFirstStartPause = absl::Seconds(5);
constexpr absl::Duration kMaxStartPause = absl::Minutes(5);
// A run that so many hosts could not start may be the reason itself.
constexpr uint32_t kMaxRefusals = 5;

}  // namespace

void RemoteScheduler::PutLease(const std::string& name, const std::string& content) {
  Post([this, name, content] {
    for (const HostEntry& entry : hosts_) {
      if (entry.link != nullptr) entry.link->PutLease(name, content);
    }
  });
}

// ---- which there are

absl::Status RemoteScheduler::AddHost(const HostConfig& config) {
  HostEntry entry = {.link = nullptr,
                     .view = {},
                     .down_since = time_.Now(),
                     .directory = {},
                     .record = HostRecord(options_.hosts_directory, config.name)};
  entry.view.config = config;
  entry.view.is_cordoned = config.cordoned;
  entry.view.why = "not reached yet";
  absl::StatusOr<std::unique_ptr<RemoteHost>> link =
      RemoteHost::Create({.config = config,
                          .directory = options_.host_directory,
                          .cluster = options_.cluster,
                          .limits = options_.rules.limits,
                          .container_runtime = options_.container_runtime,
                          .keep_work = options_.keep_work,
                          .program = options_.program,
                          .files = options_.files,
                          .turns = &layout_turns_},
                         [this, host = hosts_.size()](HostEvent event) {
                           Post([this, host, event = std::move(event)]() mutable {
                             std::visit([&](auto& e) { On(host, std::move(e)); }, event);
                           });
                         });
  if (!link.ok()) return link.status();
  entry.link = *std::move(link);
  Recall(&entry);
  router_->SetHost(config.name, nullptr);
  hosts_.push_back(std::move(entry));
  return absl::OkStatus();
}

void RemoteScheduler::Recall(HostEntry* entry) const {
  HostView& view = entry->view;
  absl::StatusOr<std::optional<Machine>> machine = entry->record.Recall(view.config);
  if (!machine.ok()) {
    LogEvent(spdlog::level::warn, "host_record_unreadable",
             {{"host", view.config.name},
              {"error", MessageOf(machine.status())},
              {"remedy", "none is needed: it is written anew when the host answers"}});
    return;
  }
  if (!machine->has_value()) return;
  view.is_known = true;
  view.capacity = std::move((*machine)->capacity);
  if (options_.rules.limits) view.limits = std::move((*machine)->limits);
  // Another one that is wanted now may be there or not.
  const std::string& wanted = options_.container_runtime;
  if (wanted == kFirstFound || wanted == (*machine)->containers.tool)
    view.containers = std::move((*machine)->containers);
}

void RemoteScheduler::WriteHostRecords() {
  for (HostEntry& entry : hosts_) {
    if (!entry.unwritten.has_value()) continue;
    const absl::Status written = entry.record.Write(entry.view.config, *entry.unwritten);
    entry.unwritten.reset();
    if (written.ok()) continue;
    LogEvent(spdlog::level::warn, "host_record_not_written",
             {{"host", entry.view.config.name},
              {"error", MessageOf(written)},
              {"remedy",
               "free disk space for the agent's state directory; it is tried again when "
               "the host comes back"}});
  }
}

void RemoteScheduler::AddNewHost(const HostConfig& config) {
  const absl::Status added = AddHost(config);
  if (!added.ok()) {
    if (std::exchange(not_added_[config.name], added) != added) {
      NoteNews();
      LogEvent(spdlog::level::err, "host_not_added",
               {{"host", config.name}, {"error", MessageOf(added)}});
    }
    return;
  }
  not_added_.erase(config.name);
  LogEvent(spdlog::level::info, "host_added", {{"host", config.name}});
  RebuildQueue();
  NoteNews();
  hosts_.back().link->StartThreads();
  TakeUpLeftovers(config.name);
}

// ---- what they say

void RemoteScheduler::On(size_t host, HostIsUp event) {
  HostEntry& entry = hosts_[host];
  const bool is_first_word = !entry.view.has_told;
  const bool has_changed = !entry.view.is_known || entry.view.capacity != event.machine.capacity;
  if (has_changed || !entry.view.is_up) NoteNews();
  entry.unwritten = event.machine;
  entry.view.capacity = std::move(event.machine.capacity);
  entry.view.limits = std::move(event.machine.limits);
  entry.view.containers = std::move(event.machine.containers);
  entry.view.issues = std::move(event.machine.issues);
  entry.view.is_known = true;
  entry.view.has_told = true;
  entry.view.is_up = true;
  entry.view.why.clear();
  entry.directory = event.directory;
  entry.last_seen = absl::Now();
  router_->SetOwner(event.directory, entry.view.config.name);
  router_->SetHost(entry.view.config.name, entry.link->lane());
  entry.has_spoken = true;
  if (has_changed) RebuildQueue();
  SetState(host);
  if (is_first_word) RefuseMisfits();
  entry.link->Sweep();
}

void RemoteScheduler::On(size_t host, const HostIsDown& event) {
  HostEntry& entry = hosts_[host];
  if (entry.view.is_up) NoteNews();
  if (std::exchange(entry.has_reported, false)) entry.down_since = time_.Now();
  entry.view.is_up = false;
  entry.view.why = event.why;
  router_->SetHost(entry.view.config.name, nullptr);
  entry.has_spoken = true;
  SetState(host);
  AdvanceRunsOn(host);
}

void RemoteScheduler::On(size_t host, const HostReported& event) {
  HostEntry& entry = hosts_[host];
  entry.has_reported = true;
  entry.last_seen = absl::Now();
  const absl::Time last_report = std::exchange(entry.last_report, entry.last_seen);
  bool is_news = false;
  for (const RankReport& report : event.report.runs) {
    const auto found = active_.find(report.run_key);
    if (found == active_.end()) continue;
    Active& run = found->second;
    for (size_t i = 0; i < run.ranks.size(); ++i) {
      if (run.ranks[i].host != entry.view.config.name) continue;
      if (!TakeReport(report, last_report, absl::Now(), &run.ranks[i])) continue;
      is_news = true;
      NoteBegun(&run, i);
    }
    Advance(&run);
    FinishIfForgotten(report.run_key);
  }
  // A failed action is tried again with each sign of life.
  if (!is_news) AdvanceRunsOn(host);
}

void RemoteScheduler::On(size_t host, const StartDone& event) {
  const bool is_config = absl::IsInvalidArgument(event.status);
  const bool is_trouble =
      !event.status.ok() && !is_config && !absl::IsUnavailable(event.status) && event.was_sent;
  if (is_trouble) PauseStarts(host, MessageOf(event.status));
  const auto found = active_.find(event.run_key);
  if (found == active_.end()) return;
  Active& run = found->second;
  Rank& rank = run.ranks[event.rank];
  rank.start_under_way = false;
  // The only one, and the host has said no: nothing of the rank is there.
  const bool was_never_there = is_trouble && !rank.start_sent && !rank.HasBegun();
  rank.start_sent = rank.start_sent || (event.was_sent && !was_never_there);
  if (was_never_there && run.what.refusals < kMaxRefusals && MayBePutBack(run)) {
    ++run.what.refusals;
    return;
  }
  if (event.status.ok()) {
    ++started_;
    hosts_[host].start_pause = absl::ZeroDuration();
    if (rank.stage == HostStage::kAbsent) rank.stage = HostStage::kClaimed;
    NoteBegun(&run, event.rank);
  } else if (absl::IsUnavailable(event.status)) {
    // The outcome is unknown; the next sign of life of the host leads to another try.
    return;
  } else if (!rank.HasBegun() && event.refused.has_value()) {
    Refuse(&run, event.rank, *event.refused);
  } else if (!rank.HasBegun()) {
    Refuse(&run, event.rank,
           MakeFailure(v1::FAILURE_CODE_LAUNCH_FAILED,
                       is_config ? v1::FAILURE_CLASS_CONFIG : v1::FAILURE_CLASS_INFRA,
                       {.detail = MessageOf(event.status),
                        .cause = is_config ? contract::FailureCause::kHostLacksData
                                           : contract::FailureCause::kHostRefused}));
  }
  Advance(&run);
  FinishIfForgotten(event.run_key);
}

void RemoteScheduler::On(size_t /*host*/, const StopDone& event) {
  const auto found = active_.find(event.run_key);
  if (found == active_.end()) return;
  Rank& rank = found->second.ranks[event.rank];
  rank.stop_under_way = false;
  if (event.status.ok()) rank.stop_told = true;
}

void RemoteScheduler::On(size_t host, const CleanDone& event) {
  const std::string& name = hosts_[host].view.config.name;
  for (const std::string& directory : event.directories) {
    const std::string run_key = directory.substr(directory.rfind('/') + 1);
    CleanedOn(name, run_key);
    if (event.logs) PrunedOn(name, run_key);
  }
}

// ---- what follows

void RemoteScheduler::NoteNews() {
  news_ = true;
  // Otherwise the broker would go by the old state for up to an inventory's interval.
  board_->NoteNews();
}

void RemoteScheduler::ReadHosts() {
  if (time_.Now() < next_look_ || !options_.read_hosts) return;
  next_look_ = time_.Now() + kFileInterval;
  const absl::StatusOr<std::vector<HostConfig>> configs = options_.read_hosts();
  if (!configs.ok()) {
    if (configs.status() != last_read_) {
      NoteNews();
      LogEvent(spdlog::level::warn, "hosts_not_read", {{"error", MessageOf(configs.status())}});
    }
    last_read_ = configs.status();
    return;
  }
  if (!std::exchange(last_read_, absl::OkStatus()).ok()) NoteNews();
  std::erase_if(not_added_, [&](const auto& entry) {
    return std::none_of(configs->begin(), configs->end(),
                        [&](const HostConfig& config) { return config.name == entry.first; });
  });
  for (const HostConfig& config : *configs) {
    const std::optional<size_t> host = FindHost(config.name);
    if (!host.has_value()) {
      AddNewHost(config);
      continue;
    }
    HostView& view = hosts_[*host].view;
    if (view.is_cordoned == config.cordoned) continue;
    view.is_cordoned = config.cordoned;
    NoteNews();
    LogEvent(spdlog::level::info, config.cordoned ? "host_cordoned" : "host_uncordoned",
             {{"host", config.name}});
    SetState(*host);
  }
}

std::vector<v1::ClusterIssue> RemoteScheduler::IssuesOfFile() const {
  std::vector<v1::ClusterIssue> issues;
  if (!last_read_.ok()) {
    issues.push_back(contract::HostsFileUnread(MessageOf(last_read_)));
  }
  for (const auto& [name, status] : not_added_) {
    issues.push_back(contract::HostNotAdded(name, MessageOf(status)));
  }
  return issues;
}

HostState RemoteScheduler::StateOf(const HostEntry& host) const {
  if (!host.view.is_up) return HostState::kDown;
  return host.view.TakesRuns() ? HostState::kUp : HostState::kCordoned;
}

void RemoteScheduler::PauseStarts(size_t host, const std::string& why) {
  HostEntry& entry = hosts_[host];
  // Starts that were sent together fail together.
  if (!entry.view.start_trouble.empty()) return;
  entry.start_pause = std::clamp(entry.start_pause * 2, kFirstStartPause, kMaxStartPause);
  entry.no_starts_until = time_.Now() + entry.start_pause;
  entry.view.start_trouble = why;
  LogEvent(spdlog::level::warn, "host_starts_paused",
           {{"host", entry.view.config.name},
            {"reason", why},
            {"pause", absl::FormatDuration(entry.start_pause)}});
  NoteNews();
  SetState(host);
}

void RemoteScheduler::EndPauses() {
  for (size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].view.start_trouble.empty() || time_.Now() < hosts_[i].no_starts_until) continue;
    hosts_[i].view.start_trouble.clear();
    NoteNews();
    SetState(i);
  }
}

void RemoteScheduler::SetState(size_t host) {
  queue_.SetState(static_cast<uint32_t>(host), StateOf(hosts_[host]));
}

void RemoteScheduler::RebuildQueue() {
  std::vector<ClusterHost> hosts;
  for (const HostEntry& entry : hosts_) {
    hosts.push_back(
        {.name = entry.view.config.name, .capacity = entry.view.capacity, .state = StateOf(entry)});
  }
  queue_.StartOver(std::move(hosts));
  for (const auto& [run_key, run] : active_) {
    if (!run.over) queue_.Restore(run_key, run.allocation, run.latest_end);
  }
}

std::optional<size_t> RemoteScheduler::FindHost(const std::string& name) const {
  for (size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].view.config.name == name) return i;
  }
  return std::nullopt;
}

void RemoteScheduler::AdvanceRunsOn(size_t host) {
  for (auto& [run_key, run] : active_) {
    const bool is_there = std::any_of(run.ranks.begin(), run.ranks.end(), [&](const Rank& rank) {
      return rank.host == hosts_[host].view.config.name && !rank.IsOver();
    });
    if (is_there) Advance(&run);
  }
}

std::optional<v1::StateReason> RemoteScheduler::SilenceOf(const Active& run,
                                                          absl::Time* since) const {
  std::optional<v1::StateReason> silence;
  *since = absl::Now();
  for (const Rank& rank : run.ranks) {
    if (rank.IsOver()) continue;
    const std::optional<size_t> host = FindHost(rank.host);
    if (!host.has_value()) {
      *since = std::min(*since, run.last_word);
      silence = contract::MakeReason(
          v1::STATE_REASON_CODE_OTHER,
          {.detail = fmt::format("host {} is not in the file of hosts any more", rank.host),
           .subject = rank.host,
           .since = *since});
      continue;
    }
    const HostEntry& entry = hosts_[*host];
    const absl::Time last_word = std::max(entry.last_seen, run.last_word);
    if (entry.view.is_up || last_word >= *since) continue;
    *since = last_word;
    // The start of the silence is unknown if this agent has never heard of the host.
    const bool was_heard = entry.last_seen != absl::InfinitePast();
    const std::string heard =
        fmt::format("the run was last heard of at {} or later",
                    absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", last_word, absl::UTCTimeZone()));
    silence = contract::MakeReason(
        v1::STATE_REASON_CODE_HOST_SILENT,
        {.detail = was_heard ? entry.view.why : fmt::format("{}: {}", heard, entry.view.why),
         .subject = rank.host,
         .since = was_heard ? std::optional(last_word) : std::nullopt});
  }
  return silence;
}

void RemoteScheduler::GiveUpLostRuns() {
  const absl::Time now = time_.Now();
  for (auto& [run_key, run] : active_) {
    if (run.ended || run.forget) continue;
    for (const Rank& rank : run.ranks) {
      if (rank.IsOver()) continue;
      const std::optional<size_t> host = FindHost(rank.host);
      const bool is_gone = !host.has_value();
      if (!is_gone && hosts_[*host].view.is_up) continue;
      const absl::Duration silent =
          is_gone ? absl::InfiniteDuration() : now - hosts_[*host].down_since;
      if (silent < options_.lost_after) continue;
      run.ended = true;
      const std::string why =
          is_gone
              ? fmt::format("host {} is not in the file of hosts any more", rank.host)
              : fmt::format("host {} has not answered for {} (machines.host_lost_after): {}",
                            rank.host, absl::FormatDuration(absl::Trunc(silent, absl::Seconds(1))),
                            hosts_[*host].view.why);
      LogEvent(spdlog::level::warn, "run_lost", {{"run", run_key}, {"reason", why}});
      board_->Put(GangLost(run_key, run.ranks, why, absl::Now()));
      Advance(&run);
      break;
    }
  }
}

void RemoteScheduler::Publish() {
  std::vector<HostView> views;
  for (const HostEntry& entry : hosts_) views.push_back(entry.view);
  const auto running = std::count_if(active_.begin(), active_.end(),
                                     [](const auto& entry) { return !entry.second.over; });
  RunScheduler::Publish(/*others=*/0, static_cast<size_t>(running), std::move(views),
                        IssuesOfFile());
  const auto silent = std::count_if(hosts_.begin(), hosts_.end(),
                                    [](const HostEntry& entry) { return !entry.has_spoken; });
  const MutexLock lock(mutex_);
  // A thread that waits for the word of a host finds it in the load.
  if (std::exchange(silent_, static_cast<size_t>(silent)) != static_cast<size_t>(silent))
    changed_.notify_all();
}

}  // namespace muster::machines
