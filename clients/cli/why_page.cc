// The page that tells why a job stands as it does.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clients/cli/estimates.h"
#include "clients/cli/history.h"
#include "clients/cli/page.h"
#include "clients/cli/views.h"
#include "contract/sentences.h"
#include "contract/states.h"

namespace muster::cli {
namespace {

// Returns the reason that the job is as it is. The line about a hold that may come too late says
// that it was asked for.
std::string WhyText(const v1::Job& job) {
  const bool has_ended = contract::IsTerminal(job.state());
  return OneLine((has_ended ? job.state_reason() : WhyItWaits(job)).message());
}

// Names the user who held or released the job, if the reason does not.
void AppendWish(const v1::Job& job, const v1::Transition* wish, Page* page) {
  if (wish == nullptr || !(job.held() || SaysReleased(KnownReason(job)))) return;
  const std::string& detail = wish->evidence().detail();
  if (detail != job.state_reason().message()) page->Line("By", OneLine(detail));
}

// Tells whether the page has the reason of the job's run already, as that of the job.
bool IsSaid(const v1::StateReason& of_run, const v1::Job& job) {
  if (job.held() && SaysHeld(of_run)) return true;
  if (SaysReleased(KnownReason(job)) && SaysHeld(of_run)) return true;
  const v1::StateReason& known = KnownWait(job);
  return of_run.code() == known.code() && of_run.scheduler_reason() == known.scheduler_reason() &&
         of_run.subject() == known.subject() && of_run.detail() == known.detail();
}

// The time since which the job waits in the broker.
const google::protobuf::Timestamp& QueuedTime(const v1::Job& job) {
  return job.runs().empty() ? job.create_time() : job.runs().rbegin()->end_time();
}

void AppendWaiting(const v1::Job& job, const v1::Transition* wish, absl::Time now, Page* page) {
  if (job.held()) {
    page->Line("Held", IsKeptBack(job) ? fmt::format("to start it: muster release {}", job.id())
                                       : HoldAskedText(job.id()));
  }
  AppendWish(job, wish, page);
  if (SaysNoWord(job)) {
    page->Line("Last known", OneLine(KnownReason(job).message()));
    page->Line("What to do", OneLine(job.state_reason().remedy()));
  }
  // The line about a hold has the advice.
  if (!job.held()) page->Line("What to do", OneLine(KnownWait(job).remedy()));
  page->Time("Retry", job.retry_time(), now);
  // The last run has ended: its times no longer matter.
  if (job.state() == v1::JOB_STATE_QUEUED) {
    page->Time("Since", KnownWait(job).since(), now);
    // Nobody knows since when a cluster lacks what a job needs; the job has not waited for longer.
    if (!KnownWait(job).has_since()) page->Time("Queued", QueuedTime(job), now);
    return;
  }
  if (job.runs().empty()) return;
  const v1::Run& run = *job.runs().rbegin();
  const v1::StateReason& reason = run.state_reason();
  if (!IsSaid(reason, job)) page->Line("Scheduler", OneLine(reason.message()));
  page->Time("Since", reason.since(), now);
  page->Time("Would start", run.estimated_start_time(), now);
  // The scheduler knows better.
  if (run.has_start_estimate() && !run.has_start_time() && !run.has_estimated_start_time())
    page->Line("Estimate", EstimateText(run.start_estimate(), now));
  page->Time("Confirmed", run.observed_at(), now);
}

// Returns who canceled it, or who saw that it was canceled.
std::string CanceledText(const std::vector<v1::Transition>& history, const v1::Transition* wish) {
  if (wish != nullptr && wish->kind() == v1::TRANSITION_KIND_CANCEL_REQUESTED)
    return OneLine(wish->evidence().detail());
  return history.empty() ? "" : OneLine(history.back().evidence().detail());
}

void AppendEnd(const v1::Job& job, const Style& style, Page* page) {
  page->Line("Exit", ExitText(job));
  const v1::Failure& failure = job.failure();
  const bool has_failed = job.state() == v1::JOB_STATE_FAILED;
  if (!has_failed && failure.message().empty()) return;
  if (failure.failure_class() != v1::FAILURE_CLASS_UNSPECIFIED) {
    page->Line("Class", contract::Name(failure.failure_class()));
  }
  page->Line("Because", OneLine(failure.message()));
  for (const v1::FailureQuote& quote : failure.quotes()) {
    page->Line("", fmt::format("{}: {}", OneLine(quote.source()),
                               Paint(OneLine(quote.text()), Colour::kDim, style.colours)));
  }
  // A user who canceled it wants no other run.
  if (has_failed && job.cancel_requested()) {
    page->Line("Cancel", "was asked for, too; the job keeps the end that its run had");
  } else if (has_failed) {
    if (failure.retriable()) page->Line("Again", "another run may end better");
    page->Line("What to do", OneLine(failure.remedy()));
  }
  page->Line("What to do", QuotesHint(job));
  page->Line("Its output", LogCommands(job));
}

// Returns whether the failure quotes the line already.
bool IsQuoted(const v1::Job& job, const std::string& line) {
  const auto& quotes = job.failure().quotes();
  return std::any_of(quotes.begin(), quotes.end(),
                     [&](const v1::FailureQuote& quote) { return quote.text() == line; });
}

void AppendOutput(const v1::Job& job, std::span<const std::string> output, Page* page) {
  if (std::all_of(output.begin(), output.end(),
                  [&](const std::string& line) { return IsQuoted(job, line); }))
    return;
  page->Label("Last lines");
  for (const std::string& line : output) page->Raw(fmt::format("    {}\n", Harmless(line)));
}

}  // namespace

std::string WhyPage(const v1::Job& job, const std::vector<v1::Transition>& history,
                    std::span<const std::string> output, const Style& style, absl::Time now) {
  const v1::Transition* wish = LatestWish(history);
  Page page(style.colours);
  page.Heading(
      fmt::format("Job {}  {}  {}", job.id(), Harmless(job.name()),
                  Paint(contract::Name(job.state()), ColourOf(job.state()), style.colours)));
  page.Line("Cluster", Harmless(job.cluster()));
  page.Line("Because", WhyText(job));
  for (const std::string& line : contract::BesidesTheFirst(job.state_reason()))
    page.Line("", OneLine(line));
  for (const v1::StateReason& reason : job.state_reason().clusters()) {
    if (!reason.has_start_estimate()) continue;
    page.Line("Estimate",
              fmt::format("on {}, as the next job there: {}", Harmless(reason.cluster()),
                          EstimateText(reason.start_estimate(), now)));
  }
  if (!job.runs().empty()) {
    const v1::Run& run = *job.runs().rbegin();
    page.Line("Cluster id", Harmless(run.external_id()));
    if (job.runs_size() > 1) page.Line("Run", fmt::format("number {} of this job", run.number()));
    if (run.restarts() > 0) {
      page.Line("Restarts", fmt::format("{} by the scheduler itself", run.restarts()));
    }
  }
  if (contract::IsTerminal(job.state())) {
    if (job.state() == v1::JOB_STATE_CANCELED) page.Line("Canceled", CanceledText(history, wish));
    AppendEnd(job, style, &page);
    page.Time("Ended", job.end_time(), now);
    AppendOutput(job, output, &page);
  } else {
    AppendWaiting(job, wish, now, &page);
    // The time of the present run; the job's is that of its first run.
    if (!job.runs().empty()) page.Time("Started", job.runs().rbegin()->start_time(), now);
  }
  return page.Take();
}

}  // namespace muster::cli
