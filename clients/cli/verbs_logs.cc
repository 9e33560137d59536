// The verb logs: of one job, of several, of all ranks.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "clients/cli/chosen_jobs.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/follow.h"
#include "clients/cli/slurm/array_jobs.h"
#include "clients/cli/text.h"
#include "clients/cli/verbs.h"
#include "contract/roles.h"
#include "contract/states.h"
#include "contract/text.h"

namespace muster::cli {
namespace {

// Each log that is followed has a stream and a thread.
constexpr size_t kMaxFollowed = 100;
// More logs one after the other nobody reads; a filter that takes more is a slip.
constexpr size_t kMaxLogsOfFilter = 1000;

absl::StatusOr<v1::Job> GetJob(Session& session, uint64_t id) {
  v1::GetJobRequest request;
  request.set_job_id(id);
  auto response = session.client.GetJob(request);
  if (!response.ok()) return response.status();
  return std::move(*response->mutable_job());
}

// The job's next run after this one, once it has one; 0: it ended without.
absl::StatusOr<uint32_t> AwaitRunAfter(Session& session, uint64_t job, uint32_t run) {
  v1::WatchJobsRequest request;
  request.add_job_ids(job);
  request.mutable_beginning();
  request.set_until_terminal(true);
  const auto reader = session.client.WatchJobs(request, absl::InfiniteFuture());
  while (true) {
    const auto change = reader->Next();
    if (!change.ok()) return change.status();
    if (!change->has_value()) return 0;
    if ((*change)->transition().run() > run) return (*change)->transition().run();
  }
}

// Returns whether a run has ended and the rest of its log has not arrived yet: who asks for the log
// of what has ended wants all of it, and it comes soon, or the broker says that it does not.
bool IsOnItsWay(const v1::Job& job, uint32_t number) {
  return std::any_of(job.runs().begin(), job.runs().end(), [number](const v1::Run& run) {
    return run.number() == number && contract::IsTerminal(run.state()) && !run.logs_complete();
  });
}

// One of the logs that were asked for.
struct AskedLog {
  JobRef ref;
  uint32_t rank = 0;
  std::string label = {};  // begins each line; empty: it is the only log
  bool names_job = false;  // its JSON objects do: there are others
};

// Tells the user why nothing was printed.
void NoteEmpty(Session& session, const v1::Job& job, const v1::ReadLogRequest& request) {
  const std::string both = fmt::format("muster logs {}.{}", job.id(), request.run());
  if (request.stream() == v1::LOG_STREAM_STDERR) {
    session.terminal.Note(
        "nothing was written to standard error, or the cluster keeps both outputs in one: " + both);
  } else if (request.stream() == v1::LOG_STREAM_STDOUT) {
    session.terminal.Note("nothing was written to standard output; both outputs: " + both);
  } else if (const bool is_latest =
                 job.runs().empty() || job.runs().rbegin()->number() == request.run();
             contract::IsTerminal(job.state()) || !is_latest) {
    // The latest run tells why the job stands as it does.
    session.terminal.Note("the log is empty");
  } else {
    session.terminal.Note(Summary(job) + " (nothing has been written yet)");
  }
}

// Names the log as the command line does; its run is open unless the command line names one.
v1::ReadLogRequest RequestOf(const Invocation& call, const AskedLog& log) {
  v1::ReadLogRequest request;
  request.set_job_id(log.ref.job);
  request.set_run(log.ref.run);
  request.set_rank(log.rank);
  if (call.only_output) request.set_stream(v1::LOG_STREAM_STDOUT);
  if (call.only_error) request.set_stream(v1::LOG_STREAM_STDERR);
  request.set_tail_lines(call.tail_lines);
  if (call.since_offset > 0) {
    v1::LogPosition& position = *request.add_positions();
    position.set_stream(request.stream());
    position.set_offset(call.since_offset);
  }
  return request;
}

// Passes the log of one run on. Returns whether some of it has not been delivered.
absl::StatusOr<bool> CopyRun(Session& session, const v1::Job& job, const AskedLog& log,
                             const v1::ReadLogRequest& request) {
  std::atomic<uint64_t> pieces = 0;
  LogObjects objects(request.run(), log.names_job ? job.id() : 0);
  const bool is_json = session.format == Format::kJson || session.format == Format::kJsonLines;
  const auto copied = CopyLog(session.client, session.terminal, request,
                              {.raw = session.call.raw,
                               .is_merged = false,
                               .label = is_json ? "" : log.label,
                               .objects = is_json ? &objects : nullptr},
                              &pieces);
  if (!copied.ok()) return copied.status();
  // Empty ones among many logs are not worth a line.
  if (pieces == 0 && !copied->is_expired && !log.names_job) {
    // It has gone on while its log was followed.
    const absl::StatusOr<v1::Job> now =
        session.call.follow ? GetJob(session, job.id()) : absl::StatusOr<v1::Job>(job);
    NoteEmpty(session, now.ok() ? *now : job, request);
  }
  return copied->is_incomplete;
}

// Passes the log of the request's run on and, if a job is followed, those of the runs after it.
int CopyRuns(Session& session, const v1::Job& job, const AskedLog& log, bool follows_job,
             v1::ReadLogRequest request) {
  int code = kOk;
  while (true) {
    request.set_follow(session.call.follow || IsOnItsWay(job, request.run()));
    const absl::StatusOr<bool> is_incomplete = CopyRun(session, job, log, request);
    if (!is_incomplete.ok()) return Fail(session, is_incomplete.status());
    if (*is_incomplete) code = kError;
    if (!follows_job) return code;
    const absl::StatusOr<uint32_t> next = AwaitRunAfter(session, job.id(), request.run());
    if (!next.ok()) return Fail(session, next.status());
    if (*next == 0) return code;
    session.terminal.Note(fmt::format("run {}.{} has ended; the log of run {}.{} follows", job.id(),
                                      request.run(), job.id(), *next));
    request.set_run(*next);
    // A new run is wanted from its beginning.
    request.clear_tail_lines();
    request.clear_positions();
  }
}

// Says why there is no log.
int NoteNoRun(Session& session, const v1::Job& job) {
  session.terminal.Note(Summary(job) + (contract::IsTerminal(job.state()) ? "; it has no log"
                                                                          : "; it has no log yet"));
  return kOk;
}

// Passes one log on, and says why if there is none.
int CopyLogOf(Session& session, const v1::Job& job, const AskedLog& log) {
  const Invocation& call = session.call;
  v1::ReadLogRequest request = RequestOf(call, log);
  const bool follows = call.follow && !contract::IsTerminal(job.state());
  // A log is one run's; which one must not change between two connections.
  if (request.run() == 0 && !job.runs().empty()) request.set_run(job.runs().rbegin()->number());
  if (request.run() == 0) {
    if (!follows) return NoteNoRun(session, job);
    const absl::StatusOr<uint32_t> run = AwaitRunAfter(session, log.ref.job, 0);
    if (!run.ok()) return Fail(session, run.status());
    if (*run == 0) {
      // It may have been canceled while it was waited for.
      const absl::StatusOr<v1::Job> now = GetJob(session, log.ref.job);
      return now.ok() ? NoteNoRun(session, *now) : Fail(session, now.status());
    }
    request.set_run(*run);
  }
  return CopyRuns(session, job, log, follows && log.ref.run == 0, std::move(request));
}

// A job whose logs are asked for, and those logs.
struct ChosenLogs {
  v1::Job job;
  std::vector<AskedLog> logs;
};

// The logs of the jobs, in their order.
absl::StatusOr<std::vector<ChosenLogs>> ChooseLogs(Session& session,
                                                   const std::vector<JobRef>& refs) {
  const Invocation& call = session.call;
  std::vector<ChosenLogs> all;
  size_t count = 0;
  for (const JobRef& ref : refs) {
    absl::StatusOr<v1::Job> job = GetJob(session, ref.job);
    if (!job.ok()) return job.status();
    ChosenLogs& one = all.emplace_back();
    const uint32_t ranks = call.all_ranks ? contract::RankCount(job->spec()) : 1;
    for (uint32_t i = 0; i < ranks; ++i) {
      const uint32_t rank = call.all_ranks ? i : call.rank;
      const std::string place = ranks > 1 ? fmt::format(" rank {}", rank) : "";
      one.logs.push_back({.ref = ref, .rank = rank, .label = NameOf(*job) + place});
    }
    count += one.logs.size();
    one.job = *std::move(job);
  }
  for (ChosenLogs& one : all) {
    for (AskedLog& log : one.logs) {
      log.names_job = count > 1;
      log.label = count > 1 && !call.no_prefix ? fmt::format("[{}] ", log.label) : "";
    }
  }
  return all;
}

// Follows all logs side by side, each with a thread.
int FollowLogs(Session& session, const std::vector<ChosenLogs>& all) {
  std::vector<std::future<int>> codes;
  for (const ChosenLogs& one : all) {
    for (const AskedLog& log : one.logs) {
      codes.push_back(std::async(std::launch::async, [&session, &job = one.job, &log] {
        return CopyLogOf(session, job, log);
      }));
    }
  }
  int code = kOk;
  for (std::future<int>& one : codes) {
    const int its = one.get();
    if (code == kOk) code = its;
  }
  return code;
}

}  // namespace

int Logs(Session& session) {
  const Invocation& call = session.call;
  std::vector<JobRef> refs = call.jobs;
  if (!call.filter.empty()) {
    const auto jobs = JobsOfFilter(session.client, call.filter, kMaxLogsOfFilter);
    if (!jobs.ok()) return Fail(session, jobs.status());
    for (const uint64_t job : *jobs) refs.push_back({.job = job});
    if (refs.empty()) session.terminal.Note("no jobs");
  }
  const auto chosen = ChooseLogs(session, refs);
  if (!chosen.ok()) return Fail(session, chosen.status());
  size_t count = 0;
  for (const ChosenLogs& one : *chosen) count += one.logs.size();
  if (count > 1 && call.since_offset > 0) {
    Fail(session, absl::InvalidArgumentError("--since-offset: each log has bytes of its own; name "
                                             "one job, and no --all-ranks"));
    return kUsage;
  }
  if (call.follow && count > kMaxFollowed) {
    Fail(session, absl::InvalidArgumentError(ToAbsl(
                      fmt::format("{} logs are more than the {} that can be followed at once; name "
                                  "fewer jobs, or leave out -f",
                                  count, kMaxFollowed))));
    return kUsage;
  }
  if (call.follow && count > 1) return FollowLogs(session, *chosen);
  const bool is_awaited =
      call.follow && count == 1 && !contract::IsTerminal((*chosen)[0].job.state());
  if (is_awaited) TellWhatKeepsLogFromComing(session, refs[0].job);
  int code = kOk;
  for (const ChosenLogs& one : *chosen) {
    for (const AskedLog& log : one.logs) {
      const int its = CopyLogOf(session, one.job, log);
      if (code == kOk) code = its;
    }
  }
  return code;
}

}  // namespace muster::cli
