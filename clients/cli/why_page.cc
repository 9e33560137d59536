// Why a job stands as it does.
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "clients/cli/page.h"
#include "clients/cli/views.h"
#include "contract/states.h"

namespace muster::cli {
namespace {

void AppendWaiting(const v1::Job& job, absl::Time now, Page* page) {
  if (job.held()) {
    page->Line("Held", fmt::format("it does not start before: muster release {}", job.id()));
  }
  page->Time("Retry", job.retry_time(), now);
  if (job.cancel_requested()) page->Line("Cancel", "requested");
  if (job.runs().empty()) return;
  const v1::Run& run = *job.runs().rbegin();
  if (run.reason() != job.reason()) page->Line("Scheduler", OneLine(run.reason()));
  page->Time("Since", run.reason_since(), now);
  page->Time("Would start", run.estimated_start_time(), now);
  page->Time("Confirmed", run.observed_at(), now);
}

void AppendEnd(const v1::Job& job, const Style& style, Page* page) {
  page->Line("Exit", ExitText(job));
  const v1::Failure& failure = job.failure();
  const bool has_failed = job.state() == v1::JOB_STATE_FAILED;
  if (!has_failed && failure.message().empty()) return;
  if (failure.failure_class() != v1::FAILURE_CLASS_UNSPECIFIED) {
    page->Line("Class", contract::Name(failure.failure_class()));
  }
  page->Line("Because", OneLine(FailureText(job)));
  for (const v1::FailureQuote& quote : failure.quotes()) {
    page->Line("", fmt::format("{}: {}", OneLine(quote.source()),
                               Paint(OneLine(quote.text()), Colour::kDim, style.colours)));
  }
  if (failure.retriable()) page->Line("Again", "another run may end better");
  page->Line("What to do", OneLine(failure.suggestion()));
  page->Line("What to do", QuotesHint(job));
  page->Line("Its output", LogCommands(job));
}

}  // namespace

std::string WhyPage(const v1::Job& job, const Style& style, absl::Time now) {
  Page page(style.colours);
  page.Heading(
      fmt::format("Job {}  {}  {}", job.id(), Harmless(job.name()),
                  Paint(contract::Name(job.state()), ColourOf(job.state()), style.colours)));
  page.Line("Cluster", Harmless(job.cluster()));
  page.Line("Because", OneLine(job.reason()));
  if (!job.runs().empty()) {
    const v1::Run& run = *job.runs().rbegin();
    page.Line("Known as", Harmless(run.external_id()));
    if (job.runs_size() > 1) page.Line("Runs", fmt::format("this is number {}", run.number()));
    if (run.restarts() > 0) {
      page.Line("Restarts", fmt::format("{} by the scheduler itself", run.restarts()));
    }
  }
  if (contract::IsTerminal(job.state())) {
    AppendEnd(job, style, &page);
    page.Time("Ended", job.end_time(), now);
  } else {
    AppendWaiting(job, now, &page);
    page.Time("Started", job.start_time(), now);
  }
  return page.Take();
}

}  // namespace muster::cli
