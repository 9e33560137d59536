// Verbs that follow what happens: logs, events, wait.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/follow.h"
#include "clients/cli/history.h"
#include "clients/cli/text.h"
#include "clients/cli/verbs.h"
#include "contract/states.h"

namespace muster::cli {
namespace {

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

// Writes changes as they come: for people the transitions, for programs all of them.
class EventPrinter {
 public:
  explicit EventPrinter(Session* session)
      : session_(*session), table_(EventColumns(session->style()), session->terminal.colours()) {}

  void Print(const v1::JobChange& change) {
    const bool is_for_people = session_.ids_only() || session_.for_people();
    if (is_for_people && !change.has_transition()) return;
    if (session_.ids_only()) {
      session_.terminal.Out(fmt::format("{}\n", change.job().id()));
    } else if (session_.for_people()) {
      table_.Add(EventRow(change.job().id(), change.transition(), session_.style()));
      session_.terminal.Out(table_.Take());
    } else if (session_.format == Format::kYaml) {
      PrintMessage(session_, change);
    } else {
      // A stream has no end to close a bracket at, so that json is one line each too.
      session_.terminal.Out(ToJsonLine(change));
    }
  }

 private:
  Session& session_;
  Table table_;
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
v1::ReadLogRequest AskedLog(const Invocation& call, const JobRef& ref) {
  v1::ReadLogRequest request;
  request.set_job_id(ref.job);
  request.set_run(ref.run);
  request.set_rank(call.rank);
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
absl::StatusOr<bool> CopyRun(Session& session, const v1::Job& job,
                             const v1::ReadLogRequest& request) {
  std::atomic<uint64_t> pieces = 0;
  LogObjects objects(request.run());
  const bool is_json = session.format == Format::kJson || session.format == Format::kJsonLines;
  const auto copied = CopyLog(session.client, session.terminal, request,
                              {.raw = session.call.raw,
                               .is_merged = false,
                               .label = "",
                               .objects = is_json ? &objects : nullptr},
                              &pieces);
  if (!copied.ok()) return copied.status();
  if (pieces == 0 && !copied->is_expired) {
    // It has gone on while its log was followed.
    const absl::StatusOr<v1::Job> now =
        session.call.follow ? GetJob(session, job.id()) : absl::StatusOr<v1::Job>(job);
    NoteEmpty(session, now.ok() ? *now : job, request);
  }
  return copied->is_incomplete;
}

// Passes the log of the request's run on and, if a job is followed, those of the runs after it.
int CopyRuns(Session& session, const v1::Job& job, bool follows_job, v1::ReadLogRequest request) {
  int code = kOk;
  while (true) {
    request.set_follow(session.call.follow || IsOnItsWay(job, request.run()));
    const absl::StatusOr<bool> is_incomplete = CopyRun(session, job, request);
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

}  // namespace

int Logs(Session& session) {
  const Invocation& call = session.call;
  if (call.jobs.size() > 1) {
    Fail(session, absl::InvalidArgumentError("logs: one job at a time; name a task as 42_5"));
    return kUsage;
  }
  const JobRef& ref = call.jobs[0];
  v1::ReadLogRequest request = AskedLog(call, ref);
  const absl::StatusOr<v1::Job> job = GetJob(session, ref.job);
  if (!job.ok()) return Fail(session, job.status());
  const bool follows = call.follow && !contract::IsTerminal(job->state());
  if (follows) TellWhatKeepsLogFromComing(session, ref.job);
  // A log is one run's; which one must not change between two connections.
  if (request.run() == 0 && !job->runs().empty()) request.set_run(job->runs().rbegin()->number());
  if (request.run() == 0) {
    if (!follows) return NoteNoRun(session, *job);
    const absl::StatusOr<uint32_t> run = AwaitRunAfter(session, ref.job, 0);
    if (!run.ok()) return Fail(session, run.status());
    if (*run == 0) {
      // It may have been canceled while it was waited for.
      const absl::StatusOr<v1::Job> now = GetJob(session, ref.job);
      return now.ok() ? NoteNoRun(session, *now) : Fail(session, now.status());
    }
    request.set_run(*run);
  }
  return CopyRuns(session, *job, follows && ref.run == 0, std::move(request));
}

namespace {

// Prints the history so far, job by job.
int PrintHistories(Session& session) {
  EventPrinter printer(&session);
  for (const JobRef& ref : session.call.jobs) {
    const auto since = static_cast<uint64_t>(session.call.since);
    const absl::Status status =
        ForEachTransition(session.client, ref.job, [&](const v1::Transition& step) {
          if (step.sequence() <= since) return;
          v1::JobChange event;
          event.set_sequence(step.sequence());
          event.mutable_job()->set_id(ref.job);
          *event.mutable_transition() = step;
          printer.Print(event);
        });
    if (!status.ok()) return Fail(session, status);
  }
  return kOk;
}

}  // namespace

int Events(Session& session) {
  const Invocation& call = session.call;
  if (!call.follow) return PrintHistories(session);
  v1::WatchJobsRequest request;
  for (const JobRef& ref : call.jobs) request.add_job_ids(ref.job);
  request.set_filter(call.filter);
  request.set_until_terminal(!call.jobs.empty());
  if (call.since > 0) {
    request.set_after(static_cast<uint64_t>(call.since));
  } else if (!call.jobs.empty()) {
    request.mutable_beginning();
  }
  const auto reader = session.client.WatchJobs(request, absl::InfiniteFuture());
  EventPrinter printer(&session);
  while (true) {
    const auto change = reader->Next();
    if (!change.ok()) return Fail(session, change.status());
    if (!change->has_value()) return kOk;
    printer.Print(**change);
  }
}

int Wait(Session& session) {
  std::vector<uint64_t> ids;
  for (const JobRef& ref : session.call.jobs) ids.push_back(ref.job);
  NoteOtherTasks(session, "wait");
  const absl::StatusOr<std::vector<v1::Job>> jobs =
      WaitForJobs(session, ids, absl::Now() + session.call.timeout);
  if (!jobs.ok()) return Fail(session, jobs.status());
  int code = kOk;
  Table table(JobColumns(session.style()), session.terminal.colours());
  for (const v1::Job& job : *jobs) {
    if (code == kOk) code = CodeFor(job);
    if (session.ids_only()) {
      session.terminal.Out(fmt::format("{}\n", job.id()));
    } else if (session.for_people()) {
      table.Add(JobRow(job, session.style(), absl::Now()));
    } else {
      PrintMessage(session, job);
    }
  }
  if (session.for_people() && !session.ids_only()) session.terminal.Out(table.Take());
  return code;
}

}  // namespace muster::cli
