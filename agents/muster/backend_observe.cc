// Observes runs for the backend.
#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "absl/time/clock.h"
#include "agents/hosts/steady_now.h"
#include "agents/muster/answers.h"
#include "agents/muster/backend.h"
#include "agents/muster/translate.h"
#include "contract/failures.h"
#include "contract/states.h"

namespace muster::remote {
namespace {

using agents::Observation;
using agents::RunHandle;

// A job that the remote broker lacks for this long is gone: its database was restored, or its
// history was cut.
constexpr absl::Duration kAbsenceGrace = absl::Minutes(1);
// The use of a run is told soon after its end, or never.
constexpr absl::Duration kUsagePatience = absl::Seconds(30);

std::vector<uint64_t> Slice(const std::vector<uint64_t>& all, size_t begin) {
  const size_t end = std::min(all.size(), begin + kMaxFilterJobs);
  return {all.begin() + static_cast<ptrdiff_t>(begin), all.begin() + static_cast<ptrdiff_t>(end)};
}

Observation Lost(const RunHandle& run, uint64_t job) {
  Observation seen;
  seen.run_key = run.run_key;
  seen.state = v1::RUN_STATE_LOST;
  seen.external_id = fmt::format("{}", job);
  seen.evidence = ByBroker(fmt::format("the remote broker has had no job {} for {}", job,
                                       absl::FormatDuration(kAbsenceGrace)));
  seen.failure = contract::MakeFailure(v1::FAILURE_CODE_LOST, v1::FAILURE_CLASS_INFRA,
                                       {.detail = seen.evidence.detail()});
  return seen;
}

}  // namespace

absl::Status RemoteBackend::Refresh(const std::vector<uint64_t>& jobs) {
  const std::vector<uint64_t> due = book_.TakeDue(jobs, feed_.IsLive(), hosts::SteadyNow());
  for (size_t begin = 0; begin < due.size(); begin += kMaxFilterJobs) {
    const std::vector<uint64_t> ids = Slice(due, begin);
    const absl::StatusOr<std::vector<v1::Job>> found =
        connection_->List(FilterOfJobs(config_.cluster, ids));
    const absl::Duration now = hosts::SteadyNow();
    if (!found.ok()) {
      for (const uint64_t id : ids) book_.Mark(id);
      // If the broker does not answer once, the look ends, instead of asking for each further
      // hundred.
      for (size_t i = begin + ids.size(); i < due.size(); ++i) book_.Mark(due[i]);
      return found.status();
    }
    std::set<uint64_t> missing(ids.begin(), ids.end());
    for (const v1::Job& job : *found) {
      missing.erase(job.id());
      book_.Put(job, now);
    }
    for (const uint64_t id : missing) book_.PutMissing(id, now);
  }
  return absl::OkStatus();
}

agents::ObserveOutcome RemoteBackend::Observe(const std::vector<RunHandle>& runs) {
  agents::ObserveOutcome outcome;
  std::vector<std::pair<const RunHandle*, uint64_t>> known;
  std::vector<uint64_t> jobs;
  for (const RunHandle& run : runs) {
    uint64_t job = JobIdOf(run.external_id);
    if (job == 0) job = book_.JobOf(run.run_key);
    if (job == 0) continue;  // a look-up finds it
    if (!book_.Knows(run.run_key)) book_.Add(run.run_key, job);
    known.emplace_back(&run, job);
    jobs.push_back(job);
  }
  outcome.scheduler = Refresh(jobs);
  for (const auto& [run, job] : known) {
    if (auto seen = See(*run, job, outcome.scheduler.ok()))
      outcome.observations.push_back(*std::move(seen));
  }
  return outcome;
}

std::optional<Observation> RemoteBackend::See(const RunHandle& run, uint64_t job, bool is_live) {
  const absl::Duration now = hosts::SteadyNow();
  const RunBook::Seen seen = book_.Look(run.run_key, now);
  if (seen.missing) {
    if (*seen.missing < kAbsenceGrace) return std::nullopt;
    return Lost(run, job);
  }
  if (seen.job == nullptr) return std::nullopt;
  if (seen.awaits_output) return HeldBack(run, *seen.job);
  // An end stays an end, even if nobody answers now; any other state is old.
  if (!is_live && !contract::IsTerminal(seen.job->state())) return std::nullopt;
  return ObservationOf(run, *seen.job);
}

absl::StatusOr<agents::UsageByRun> RemoteBackend::UsageOf(const std::vector<RunHandle>& runs) {
  std::map<uint64_t, std::string> by_job;
  std::vector<uint64_t> ids;
  for (const RunHandle& run : runs) {
    const absl::StatusOr<uint64_t> id = FindId(run);
    if (!id.ok()) return id.status();
    if (*id == 0 || !by_job.emplace(*id, run.run_key).second) continue;
    ids.push_back(*id);
  }
  agents::UsageByRun usage;
  const absl::Time now = absl::Now();
  for (size_t begin = 0; begin < ids.size(); begin += kMaxFilterJobs) {
    const absl::StatusOr<std::vector<v1::Job>> jobs =
        connection_->List(FilterOfJobs(config_.cluster, Slice(ids, begin)));
    if (!jobs.ok()) return jobs.status();
    for (const v1::Job& job : *jobs) {
      std::optional<v1::ResourceUsage> used;
      if (!job.runs().empty() && job.runs().rbegin()->has_usage())
        used = job.runs().rbegin()->usage();
      const absl::Time end = absl::FromUnixSeconds(job.end_time().seconds());
      if (used || job.runs().empty() || now - end > kUsagePatience)
        usage.emplace(by_job.at(job.id()), std::move(used));
    }
  }
  return usage;
}

}  // namespace muster::remote
