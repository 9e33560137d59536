// Preflights and plans.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "clients/cli/estimates.h"
#include "clients/cli/page.h"
#include "clients/cli/plan_outlook.h"
#include "clients/cli/short_manifest.h"
#include "clients/cli/views.h"
#include "contract/job_file_names.h"

namespace muster::cli {
namespace {

Cell ResultCell(v1::CheckResult result) {
  switch (result) {
    case v1::CHECK_RESULT_OK:
      return {"ok", Colour::kGreen};
    case v1::CHECK_RESULT_WARN:
      return {"warn", Colour::kYellow};
    case v1::CHECK_RESULT_FAIL:
      return {"FAIL", Colour::kRed};
    case v1::CHECK_RESULT_SKIPPED:
      return {"skipped", Colour::kDim};
    default:
      return {"?", Colour::kYellow};
  }
}

// The own part of a batch script, or the command of a machine, is no longer than this. A longer
// text would push the checks off the screen.
constexpr auto kMaxShownLines = 24;

// Shortens a submission unless `whole`: of a manifest it keeps the few lines that tell jobs apart;
// of any other submission it keeps the job's own part, or only its length if that part is long.
std::string SubmissionText(const v1::JobPlan& plan, bool whole) {
  const std::string_view submission = plan.submission();
  if (const auto brief = whole ? std::nullopt : ShortManifest(submission); brief.has_value()) {
    const auto lines = std::count(submission.begin(), submission.end(), '\n');
    return fmt::format("{}(its manifest has {} lines; add --manifest to see them)\n", *brief,
                       lines);
  }
  std::string text = Harmless(submission, Keep::kLayout);
  if (!text.ends_with('\n')) text += '\n';
  const auto lines = std::count(text.begin(), text.end(), '\n');
  if (!whole && lines > kMaxShownLines)
    return fmt::format("{} lines; add --manifest to see them\n", lines);
  if (whole) return text + Harmless(plan.shared(), Keep::kLayout);
  if (!plan.shared().empty()) text += "(add --manifest to see what is alike for all jobs, too)\n";
  return text;
}

void AppendStart(const v1::JobPlan& plan, absl::Time now, Page* page) {
  if (HasFailed(plan)) {
    page->Line("Would not start", "as it is: see the checks");
  } else if (!plan.has_estimated_start_time()) {
    page->Line("Would start", "at an unknown time: the cluster gives no estimate");
  } else if (StartsAtOnce(plan, now)) {
    page->Line("Would start", "at once");
  } else {
    page->Time("Would start", plan.estimated_start_time(), now);
  }
}

// The field or the thing that was looked at, as users name it.
std::string SubjectOf(const v1::ClusterCheck& check) {
  return OneLine(contract::JobFileName(check.subject()));
}

}  // namespace

std::string ChecksText(const google::protobuf::RepeatedPtrField<v1::ClusterCheck>& checks,
                       const Style& style) {
  constexpr size_t kRemedyIndent = 9;  // under the subjects
  size_t width = 0;
  for (const v1::ClusterCheck& check : checks) {
    width = std::max(width, Width(SubjectOf(check)));
  }
  std::string text;
  for (int i = 0; i < checks.size(); ++i) {
    const v1::ClusterCheck& check = checks[i];
    const Cell result = ResultCell(check.result());
    const std::string subject = SubjectOf(check);
    const std::string seen = OneLine(check.seen());
    text += Paint(result.text, result.colour, style.colours) +
            std::string(kRemedyIndent - result.text.size(), ' ') + subject;
    if (!seen.empty()) text += std::string(width - Width(subject) + 2, ' ') + seen;
    text += '\n';
    // Lines of one cause have their remedy once, below the last of them.
    const bool goes_on = i + 1 < checks.size() && checks[i + 1].remedy() == check.remedy();
    if (check.remedy().empty() || goes_on) continue;
    text +=
        fmt::format("{}What to do: {}\n", std::string(kRemedyIndent, ' '), OneLine(check.remedy()));
  }
  return text;
}

std::string PlanPage(const v1::JobPlan& plan, const Style& style, bool whole, absl::Time now) {
  Page page(style.colours);
  page.Heading(fmt::format("On cluster {}", Harmless(plan.cluster())));
  AppendStart(plan, now, &page);
  if (plan.has_start_estimate() && !HasFailed(plan))
    page.Line("Estimate", EstimateText(plan.start_estimate(), now));
  page.Line("On nodes", Harmless(fmt::format("{}", fmt::join(plan.nodes(), ", "))));
  if (!plan.checks().empty()) {
    page.Heading("Checks");
    page.Raw(ChecksText(plan.checks(), style));
  }
  if (!plan.submission().empty()) {
    page.Heading("Submission");
    page.Raw(SubmissionText(plan, whole));
  }
  return page.Take();
}

}  // namespace muster::cli
