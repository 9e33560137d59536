// Verbs that follow what happens: events, wait.
#include <fmt/format.h>

#include <algorithm>
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

// Writes changes as they come: for people the transitions, for programs all of them.
class EventPrinter {
 public:
  explicit EventPrinter(Session* session)
      : session_(*session), table_(EventColumns(session->style()), session->style().look()) {}

  void Print(const v1::JobChange& change) {
    const bool is_for_people = session_.ids_only() || session_.for_people();
    if (is_for_people && !change.has_transition()) return;
    if (session_.ids_only()) {
      session_.terminal.Out(fmt::format("{}\n", change.job().id()));
    } else if (session_.for_people()) {
      table_.Add(EventRow(change.job().id(), change.transition(), session_.style()));
      session_.terminal.Out(table_.Take());
    } else if (session_.format != Format::kJson) {
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
  Table table(JobColumns(session.style()), session.style().look());
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
