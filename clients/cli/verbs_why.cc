// Verbs that explain: why, plan.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/history.h"
#include "clients/cli/known_clusters.h"
#include "clients/cli/local_secrets.h"
#include "clients/cli/plan_outlook.h"
#include "clients/cli/submission.h"
#include "clients/cli/tail.h"
#include "clients/cli/text.h"
#include "clients/cli/uploading.h"
#include "clients/cli/verbs.h"

namespace muster::cli {
namespace {

// The plans of one job.
int PlanOne(Session& session, const v1::JobSpec& spec) {
  v1::PlanJobRequest request;
  *request.mutable_spec() = spec;
  const auto response = session.client.PlanJob(request);
  if (!response.ok()) return Fail(session, response.status());
  if (session.ids_only()) {
    for (const v1::JobPlan& plan : response->plans()) {
      if (!HasFailed(plan)) session.terminal.Out(Harmless(plan.cluster()) + "\n");
    }
  } else if (!session.for_people()) {
    PrintMessage(session, *response);
  } else {
    const bool is_whole = session.call.manifest || session.format == Format::kWide;
    std::string text;
    for (const v1::JobPlan& plan : response->plans()) {
      text += text.empty() ? "" : "\n";
      text += PlanPage(plan, session.style(), is_whole, absl::Now());
    }
    session.terminal.Out(text);
    session.terminal.Note("nothing was submitted");
  }
  // One cluster that can take it is enough.
  const bool is_good = std::any_of(response->plans().begin(), response->plans().end(),
                                   [](const v1::JobPlan& plan) { return !HasFailed(plan); });
  return is_good ? kOk : kCannotBePlaced;
}

// Returns the last output of the rank that failed, of its setup or its program.
std::vector<std::string> LastOutput(Session& session, const v1::Job& job) {
  constexpr size_t kLines = 5;                            // as many as one reads at a glance
  constexpr size_t kMaxLineBytes = 400;                   // five lines of a terminal
  constexpr absl::Duration kPatience = absl::Seconds(2);  // of a log of many GiB none is shown
  const std::optional<uint32_t> rank = RankToRead(job);
  if (!rank.has_value()) return {};
  v1::ReadLogRequest request;
  request.set_job_id(job.id());
  request.set_run(job.runs().rbegin()->number());
  request.set_rank(*rank);
  return LastLines(session.client, request, kLines, kMaxLineBytes, absl::Now() + kPatience);
}

}  // namespace

int Why(Session& session) {
  for (const JobRef& ref : session.call.jobs) {
    v1::GetJobRequest request;
    request.set_job_id(ref.job);
    const auto response = session.client.GetJob(request);
    if (!response.ok()) return Fail(session, response.status());
    const absl::Time now = absl::Now();
    if (session.ids_only()) {
      session.terminal.Out(fmt::format("{}\n", response->job().id()));
    } else if (!session.for_people()) {
      PrintMessage(session, response->job());
    } else {
      const auto history = HistoryOf(session.client, response->job().id());
      session.terminal.Out(WhyPage(response->job(), history.value_or(std::vector<v1::Transition>()),
                                   LastOutput(session, response->job()), session.style(), now));
    }
  }
  return kOk;
}

int Plan(Session& session) {
  if (session.call.manifest && session.ids_only()) {
    Fail(session, absl::InvalidArgumentError(
                      "--manifest: -q and -o name print the clusters' names alone; leave one of "
                      "both out"));
    return kUsage;
  }
  auto asked = AskedFor(session);
  if (const int* code = std::get_if<int>(&asked)) return *code;
  auto& jobs = std::get<client::JobFile>(asked);
  LeaveOutLocalSecrets(&jobs);
  for (const v1::JobSpec& spec : jobs.specs) {
    if (absl::Status status = CheckSpec(spec, JobFlags()); !status.ok()) {
      return Fail(session, status);
    }
  }
  if (absl::Status kinds = CheckKinds(session, jobs); !kinds.ok()) return Fail(session, kinds);
  const auto found = ReadUploads(session, &jobs);
  if (!found.ok()) return Fail(session, found.status());
  int code = kOk;
  for (const v1::JobSpec& spec : jobs.specs) {
    const int one = PlanOne(session, spec);
    if (code == kOk) code = one;
  }
  if (!found->empty()) session.terminal.Note("it " + *found + "; no file was uploaded");
  return code;
}

}  // namespace muster::cli
