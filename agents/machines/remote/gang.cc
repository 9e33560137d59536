#include "agents/machines/remote/gang.h"

#include <algorithm>
#include <utility>

#include "agents/core/proto_time.h"
#include "agents/machines/verdict.h"
#include "contract/counted.h"
#include "contract/failures.h"
#include "contract/sentences.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::machines {
namespace {

using agents::Observation;

constexpr uint64_t kMebibyte = 1 << 20;
// A reason names at most this many hosts, because it is one line for people.
constexpr size_t kMaxNamedHosts = 3;

Witness WitnessOf(const std::string& run_key, const Rank& rank, absl::Time now) {
  return {.run_key = run_key, .hostname = rank.host, .now = now};
}

// Returns whether it is over because the user wanted it to be, whatever has become of it.
bool WasCanceled(const Rank& rank) {
  if (rank.refused.has_value()) return true;
  return rank.stage == HostStage::kVanished && rank.stop_told;
}

Observation CanceledVerdict(const Witness& witness, const Rank& rank) {
  const ExitRecord exit = {
      .phase = ExitRecord::Phase::kQueue,
      .end = ExitRecord::End::kNothingRan,
      .cause = ExitRecord::Cause::kCanceled,
      .end_us = absl::ToUnixMicros(rank.refused.has_value() ? rank.refused_at : rank.vanished_at)};
  Observation observation = EndVerdict(witness, exit);
  observation.evidence.set_detail(
      "canceled; " + (rank.refused.has_value() ? rank.refused->message() : rank.vanished));
  return observation;
}

// Returns the end of one rank that is over.
Observation RankEnd(const std::string& run_key, const Rank& rank, bool cancel_asked,
                    absl::Time now) {
  const Witness witness = WitnessOf(run_key, rank, now);
  if (cancel_asked && WasCanceled(rank)) return CanceledVerdict(witness, rank);
  if (rank.refused.has_value()) {
    Observation observation = NotStartedVerdict(witness, *rank.refused);
    observation.end_time = rank.refused_at;
    return observation;
  }
  if (rank.exit.has_value()) return EndVerdict(witness, *rank.exit);
  Observation observation = VanishedVerdict(witness, rank.vanished);
  observation.end_time = rank.vanished_at;
  return observation;
}

std::vector<std::string> NamesOf(const std::vector<Rank>& ranks) {
  std::vector<std::string> names;
  for (const Rank& rank : ranks) names.push_back(rank.host);
  return names;
}

std::optional<absl::Time> FirstStart(const std::vector<Rank>& ranks) {
  std::optional<absl::Time> first;
  for (const Rank& rank : ranks) {
    int64_t start_us = rank.started.has_value() ? rank.started->time_us : 0;
    if (rank.exit.has_value() && rank.exit->start_us != 0) start_us = rank.exit->start_us;
    if (start_us == 0) continue;
    const absl::Time start = absl::FromUnixMicros(start_us);
    first = first.has_value() ? std::min(*first, start) : start;
  }
  return first;
}

// Returns the sum over the ranks, and the most of one process. Nothing: that of some rank is not
// known.
std::optional<v1::ResourceUsage> UsageOf(const std::vector<Rank>& ranks,
                                         const std::vector<Observation>& ends) {
  absl::Duration user, system;
  uint64_t max_rss = 0;
  bool any = false;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const bool is_queued =
        ranks[i].exit.has_value() && ranks[i].exit->phase == ExitRecord::Phase::kQueue;
    if (!ends[i].usage.has_value() && ranks[i].HasBegun() && !is_queued) return std::nullopt;
    if (!ends[i].usage.has_value()) continue;
    any = true;
    user += agents::FromProto(ends[i].usage->user_cpu_time());
    system += agents::FromProto(ends[i].usage->system_cpu_time());
    max_rss = std::max<uint64_t>(max_rss, ends[i].usage->max_rss_bytes());
  }
  if (!any) return std::nullopt;
  v1::ResourceUsage usage;
  *usage.mutable_user_cpu_time() = agents::ToProto(user);
  *usage.mutable_system_cpu_time() = agents::ToProto(system);
  usage.set_max_rss_bytes(max_rss);
  return usage;
}

}  // namespace

bool TakeReport(const RankReport& report, absl::Time last_report, absl::Time now, Rank* rank) {
  // A TERM that came before the supervisor had its claim may have ended it without a trace; then
  // the host is told again, which takes the claim.
  if (report.stage == HostStage::kAbsent && !rank->HasBegun()) rank->stop_told = false;
  // A look from before the start was answered.
  if (report.stage == HostStage::kAbsent || report.stage == rank->stage) return false;
  // A rank that has begun was not refused, whatever the answer to a second start.
  rank->refused.reset();
  if (rank->IsOver()) return false;
  rank->stage = report.stage;
  if (report.started.has_value()) rank->started = report.started;
  rank->exit = report.exit;
  rank->vanished = report.detail;
  rank->vanished_after = last_report;
  rank->vanished_at = now;
  // The note of the cancel may be missing if the disk is full; the TERM was ours all the same.
  if (rank->exit.has_value() && rank->stop_told &&
      rank->exit->cause == ExitRecord::Cause::kTerminated) {
    rank->exit->cause = ExitRecord::Cause::kCanceled;
  }
  return true;
}

bool HasFailed(const Rank& rank) {
  if (!rank.IsOver()) return false;
  return RankEnd("", rank, /*cancel_asked=*/false, rank.vanished_at).state !=
         v1::RUN_STATE_SUCCEEDED;
}

Observation GangEnd(const std::string& run_key, const std::vector<Rank>& ranks, bool cancel_asked,
                    absl::Time now) {
  std::vector<Observation> ends;
  for (const Rank& rank : ranks) ends.push_back(RankEnd(run_key, rank, cancel_asked, now));
  // A failure before an end that was asked for, and that before a success.
  const auto weight = [](const Observation& end) {
    if (end.state == v1::RUN_STATE_FAILED) return 0;
    return end.state == v1::RUN_STATE_CANCELED ? 1 : 2;
  };
  size_t first = 0;
  for (size_t i = 1; i < ends.size(); ++i) {
    const auto order = [&](size_t rank) {
      const bool is_gone = !ranks[rank].vanished.empty();
      const absl::Time failed = is_gone ? ranks[rank].vanished_after : *ends[rank].end_time;
      return std::pair(weight(ends[rank]), weight(ends[rank]) == 2 ? absl::Time() : failed);
    };
    if (order(i) < order(first)) first = i;
  }
  Observation end = ends[first];
  for (const Observation& other : ends) end.end_time = std::max(*end.end_time, *other.end_time);
  end.nodes = NamesOf(ranks);
  end.start_time = FirstStart(ranks);
  end.usage = UsageOf(ranks, ends);
  if (end.exit.has_value()) end.exit->set_rank(static_cast<uint32_t>(first));
  const std::string where = fmt::format("rank {} on {}: ", first, ranks[first].host);
  end.evidence.set_detail(where + end.evidence.detail());
  if (end.failure.has_value()) {
    end.failure->set_rank(static_cast<uint32_t>(first));
    end.failure->set_node(ranks[first].host);
    contract::PutSentence(&*end.failure);
  }
  if (end.state == v1::RUN_STATE_CANCELED && !cancel_asked) {
    // The run ended because of a rank that could not be started; an agent that has died since knew
    // the reason.
    end.state = v1::RUN_STATE_FAILED;
    end.failure = MakeFailure(v1::FAILURE_CODE_STARTED_IN_PART, v1::FAILURE_CLASS_INFRA,
                              {.phase = v1::FAILURE_PHASE_LAUNCH});
  }
  return end;
}

Observation GangProgress(const std::string& run_key, const std::vector<Rank>& ranks,
                         absl::Time now) {
  const bool is_running =
      std::all_of(ranks.begin(), ranks.end(), [](const Rank& rank) { return rank.IsRunning(); });
  const auto witness = [&](size_t rank) { return WitnessOf(run_key, ranks[rank], now); };
  Observation progress = StartingVerdict(witness(0), 0);
  for (size_t i = 0; is_running && i < ranks.size(); ++i) {
    if (ranks[i].started.has_value()) progress = RunningVerdict(witness(i), *ranks[i].started);
  }
  const ProgressFacts facts = FactsOf({}, ranks);
  progress.evidence.set_detail(fmt::format("of {} ranks {} have begun and {} have ended",
                                           ranks.size(), facts.begun, facts.over));
  progress.nodes = NamesOf(ranks);
  progress.start_time = is_running ? FirstStart(ranks) : std::nullopt;
  progress.external_id.clear();
  return progress;
}

ProgressFacts FactsOf(v1::StateReason reason, const std::vector<Rank>& ranks) {
  ProgressFacts facts;
  for (const Rank& rank : ranks) {
    facts.begun += rank.HasBegun() ? 1 : 0;
    facts.over += rank.IsOver() ? 1 : 0;
  }
  reason.clear_message();
  reason.clear_remedy();
  facts.reason = reason.SerializeAsString();
  return facts;
}

v1::StateReason CopyingReason(const std::vector<std::string>& hosts, uint64_t bytes,
                              uint64_t all_bytes) {
  if (hosts.empty()) {
    return contract::MakeReason(v1::STATE_REASON_CODE_LAUNCHING,
                                {.detail = "its files are there, and it is being started"});
  }
  std::string reason =
      fmt::format("its files are being copied to {}", contract::ListedUpTo(kMaxNamedHosts, hosts));
  // A smaller copy is over before anybody could be told.
  if (all_bytes >= kMebibyte)
    reason += fmt::format(" ({} of {} MiB)", bytes / kMebibyte, all_bytes / kMebibyte);
  return contract::MakeReason(v1::STATE_REASON_CODE_BRINGING_FILES, {.detail = reason});
}

Observation GangLost(const std::string& run_key, const std::vector<Rank>& ranks,
                     const std::string& why, absl::Time now) {
  Observation lost = LostVerdict(WitnessOf(run_key, ranks[0], now), ranks[0].directory);
  lost.nodes = NamesOf(ranks);
  lost.start_time = FirstStart(ranks);
  lost.evidence.set_detail(why);
  lost.failure = MakeFailure(v1::FAILURE_CODE_LOST, v1::FAILURE_CLASS_INFRA,
                             {.meaning = why, .cause = contract::FailureCause::kHostGone});
  lost.failure->set_retriable(false);
  return lost;
}

}  // namespace muster::machines
