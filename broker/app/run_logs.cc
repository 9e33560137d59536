#include "broker/app/run_logs.h"

#include <fmt/format.h>

#include "broker/app/rights.h"
#include "broker/logs/archive.h"
#include "broker/store/store.h"
#include "contract/counted.h"
#include "contract/errors.h"
#include "contract/roles.h"
#include "contract/states.h"
#include "google/protobuf/util/time_util.h"

namespace muster::broker {
namespace {

// The API states this bound, which is two logs for each of 10,000 ranks.
constexpr int kMaxListedLogs = 20'000;

absl::Time ToTime(const google::protobuf::Timestamp& time) {
  return absl::FromUnixNanos(google::protobuf::util::TimeUtil::TimestampToNanoseconds(time));
}

}  // namespace

absl::Status NoSuchRank(uint64_t job, uint32_t rank, uint32_t ranks) {
  return contract::Error(
      absl::StatusCode::kNotFound, "NO_SUCH_RANK",
      fmt::format("job {} has {} ranks, beginning at 0; there is no rank {}", job, ranks, rank));
}

absl::Status NoSuchRun(uint64_t job, uint32_t run, uint32_t runs) {
  return contract::Error(absl::StatusCode::kNotFound, "NO_SUCH_RUN",
                         fmt::format("job {} has had {}; there is no run {}", job,
                                     contract::Counted(runs, "run"), run));
}

absl::StatusOr<RunFacts> LookAtRun(const store::Store& store, const store::Scope& scope,
                                   uint64_t job_id, uint32_t run) {
  const absl::StatusOr<v1::Job> job = store.GetJob(scope, job_id);
  if (!job.ok()) return job.status();
  const auto runs = static_cast<uint32_t>(job->runs_size());
  if (run > runs) return NoSuchRun(job_id, run, runs);
  RunFacts facts;
  facts.run = run != 0 ? run : runs;
  facts.ranks = contract::RankCount(job->spec());
  if (facts.run == 0) {
    facts.has_ended = contract::IsTerminal(job->state());
    return facts;
  }
  const v1::Run& found = job->runs(static_cast<int>(facts.run) - 1);
  facts.logs_complete = found.logs_complete();
  facts.has_ended = contract::IsTerminal(found.state());
  if (facts.has_ended) {
    facts.end_time = ToTime(found.has_end_time() ? found.end_time() : job->end_time());
  }
  return facts;
}

v1::LogEnd EndOfLog(v1::LogEnd in_archive, const RunFacts& run, bool is_grace_over) {
  if (in_archive != v1::LOG_END_MORE_LATER || !run.has_ended) return in_archive;
  if (run.logs_complete) return v1::LOG_END_COMPLETE;
  return is_grace_over ? v1::LOG_END_INCOMPLETE : v1::LOG_END_MORE_LATER;
}

absl::StatusOr<v1::ListLogsResponse> ListLogs(const Principal& principal, const Services& services,
                                              const v1::ListLogsRequest& request) {
  const absl::StatusOr<store::Scope> scope = Authorize(principal, UseCase::kReadLogs);
  if (!scope.ok()) return scope.status();
  if (request.job_id() == 0) return contract::BadField("job_id", "is required");
  const auto run = LookAtRun(*services.store, *scope, request.job_id(), request.run());
  if (!run.ok()) return run.status();
  v1::ListLogsResponse response;
  response.set_run(run->run);
  if (run->run == 0) return response;
  const auto logs = services.archive->List(request.job_id(), run->run);
  if (!logs.ok()) return logs.status();
  const bool is_grace_over = services.now() - run->end_time > services.log_grace;
  for (const logs::ListedLog& log : *logs) {
    if (response.logs_size() == kMaxListedLogs) break;
    v1::Log& added = *response.add_logs();
    added.set_rank(log.rank);
    added.set_stream(log.stream);
    added.set_size_bytes(log.facts.size);
    added.set_end(EndOfLog(log.facts.end, *run, is_grace_over));
  }
  return response;
}

}  // namespace muster::broker
