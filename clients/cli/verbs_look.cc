// Verbs that look at jobs: list, count, show.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "clients/cli/count_table.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/filter.h"
#include "clients/cli/history.h"
#include "clients/cli/known_clusters.h"
#include "clients/cli/options.h"
#include "clients/cli/report.h"
#include "clients/cli/shape.h"
#include "clients/cli/slurm/array_jobs.h"
#include "clients/cli/text.h"
#include "clients/cli/verbs.h"
#include "contract/characters.h"
#include "contract/counted.h"
#include "contract/states.h"

namespace muster::cli {
namespace {

// The broker gives as many at once.
constexpr uint64_t kMaxPageSize = 1000;

// Writes jobs page by page, so that any number of them fits into memory.
class JobPrinter {
 public:
  explicit JobPrinter(Session* session)
      : session_(*session), table_(JobColumns(session->style()), session->style().look()) {}

  void Add(const v1::ListJobsResponse& page, absl::Time now) {
    std::string out;
    for (const v1::Job& job : page.jobs()) {
      ++count_;
      if (session_.ids_only()) {
        out += fmt::format("{}\n", job.id());
      } else if (session_.for_people()) {
        table_.Add(JobRow(job, session_.style(), now));
      } else if (session_.by_line()) {
        out += LineOf(session_, job);
      } else {
        *whole_.add_jobs() = job;
      }
    }
    if (session_.for_people() && !session_.ids_only() && !page.jobs().empty()) out += table_.Take();
    session_.terminal.Out(out);
  }

  // Prints formats that can only be written whole.
  void Finish() {
    const bool is_whole = !session_.for_people() && !session_.by_line() && !session_.ids_only();
    if (is_whole) PrintMessage(session_, whole_);
  }

  uint64_t count() const { return count_; }

 private:
  Session& session_;
  Table table_;
  v1::ListJobsResponse whole_;
  uint64_t count_ = 0;
};

// Leaves one run of the job, if one was named.
absl::Status KeepRun(uint32_t number, v1::Job* job) {
  if (number == 0) return absl::OkStatus();
  v1::Run kept;
  for (const v1::Run& run : job->runs()) {
    if (run.number() == number) kept = run;
  }
  if (kept.number() == 0) {
    return absl::NotFoundError(fmt::format("job {} has no run {}.{}; it has had {}", job->id(),
                                           job->id(), number,
                                           contract::Counted(job->runs_size(), "run")));
  }
  job->clear_runs();
  *job->add_runs() = std::move(kept);
  return absl::OkStatus();
}

// A template prints texts of jobs as they are. A terminal would obey the control characters in
// them.
std::string ShapedText(const Session& session, const google::protobuf::Message& message) {
  std::string text = session.call.shape->Apply(message);
  return session.terminal.out_is_terminal() ? Harmless(text, Keep::kLayout) : text;
}

}  // namespace

int Fail(Session& session, const absl::Status& status) {
  WriteError(session.terminal, session.format, status);
  return CodeFor(status);
}

std::string LineOf(const Session& session, const google::protobuf::Message& message) {
  return session.format == Format::kTemplate ? ShapedText(session, message) : ToJsonLine(message);
}

void PrintMessage(Session& session, const google::protobuf::Message& message) {
  switch (session.format) {
    case Format::kYaml:
      // Several messages make several documents.
      return session.terminal.Out("---\n" + ToYaml(message));
    case Format::kJsonLines:
    case Format::kTemplate:
      return session.terminal.Out(LineOf(session, message));
    case Format::kJsonPath:
      return session.terminal.Out(ShapedText(session, message));
    default:
      return session.terminal.Out(ToJson(message));
  }
}

void NoteOtherTasks(Session& session, std::string_view verb) {
  const auto& jobs = session.call.jobs;
  // A user who named the task as one knows of the others.
  if (!session.for_people() || jobs.size() != 1 || jobs[0].task.has_value()) return;
  v1::GetJobRequest request;
  request.set_job_id(session.call.jobs[0].job);
  const auto response = session.client.GetJob(request);
  // The verb has done its work; a remark is not worth an error.
  if (!response.ok()) return;
  const std::string others = OtherTasksText(response->job(), verb);
  if (!others.empty()) session.terminal.Note(others);
}

int List(Session& session) {
  if (session.call.watch) return WatchList(session);
  v1::ListJobsRequest request;
  request.set_filter(FilterOf(session.call));
  request.set_order_by(session.call.order_by);
  const uint64_t limit = session.call.limit;
  const absl::Time now = absl::Now();
  JobPrinter printer(&session);
  while (true) {
    const uint64_t rest = limit == 0 ? kMaxPageSize : limit - printer.count();
    request.set_page_size(static_cast<int32_t>(std::min(rest, kMaxPageSize)));
    const auto page = session.client.ListJobs(request);
    if (!page.ok()) return Fail(session, page.status());
    printer.Add(*page, now);
    request.set_page_token(page->next_page_token());
    if (page->next_page_token().empty()) break;
    if (limit > 0 && printer.count() >= limit) {
      // A user who named the limit knows of it, and a program reads next_page_token.
      if (limit == kDefaultListLimit && session.for_people() && !session.ids_only())
        session.terminal.Note("there are more; --limit 0 lists all of them");
      break;
    }
  }
  printer.Finish();
  if (printer.count() == 0 && session.for_people()) session.terminal.Note("no jobs");
  if (session.for_people() && !session.ids_only())
    NoteUnknownClusters(session, session.call.spec.clusters);
  return kOk;
}

int Count(Session& session) {
  v1::CountJobsRequest request;
  request.set_filter(FilterOf(session.call));
  for (const CountBy& by : session.call.count_by) {
    request.add_group_by(by.grouping);
    if (!by.label.empty()) request.set_label(by.label);
  }
  const auto response = session.client.CountJobs(request);
  if (!response.ok()) return Fail(session, response.status());
  if (session.ids_only()) {
    session.terminal.Out(fmt::format("{}\n", response->total()));
  } else if (session.for_people()) {
    session.terminal.Out(CountTable(request, *response, session.style()));
  } else {
    PrintMessage(session, *response);
  }
  return kOk;
}

int Show(Session& session) {
  for (const JobRef& ref : session.call.jobs) {
    v1::GetJobRequest request;
    request.set_job_id(ref.job);
    const auto response = session.client.GetJob(request);
    if (!response.ok()) return Fail(session, response.status());
    v1::Job job = response->job();
    if (const absl::Status status = KeepRun(ref.run, &job); !status.ok()) {
      return Fail(session, status);
    }
    if (session.ids_only()) {
      session.terminal.Out(fmt::format("{}\n", job.id()));
    } else if (!session.for_people()) {
      PrintMessage(session, job);
    } else {
      auto history = HistoryOf(session.client, job.id());
      if (history.ok() && ref.run > 0) {
        std::erase_if(*history, [&ref](const auto& step) { return step.run() != ref.run; });
      }
      if (!history.ok()) session.terminal.Err(ErrorText(history.status()));
      const absl::Time now = absl::Now();
      session.terminal.Out(JobPage(job, history.ok() ? *history : std::vector<v1::Transition>(),
                                   session.style(), now));
    }
  }
  return kOk;
}

void PrintJobs(Session& session, const v1::ListJobsResponse& jobs) {
  JobPrinter printer(&session);
  printer.Add(jobs, absl::Now());
}

}  // namespace muster::cli
