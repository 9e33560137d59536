#include "agents/core/check_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "agents/core/clean_text.h"

namespace muster::agents {
namespace {

std::string_view Word(v1::CheckResult result) {
  switch (result) {
    case v1::CHECK_RESULT_OK:
      return "ok";
    case v1::CHECK_RESULT_WARN:
      return "warn";
    case v1::CHECK_RESULT_FAIL:
      return "fail";
    default:
      return "skipped";
  }
}

// Puts words of others on one line, without those that a terminal obeys.
std::string OneLine(std::string_view text) {
  std::string line = CleanText(text, kMaxDetailBytes);
  while (line.ends_with('\n')) line.pop_back();
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < ' ' || c == 0x7F; }, ' ');
  return line;
}

int Count(const v1::ClusterChecks& checks, v1::CheckResult result) {
  return static_cast<int>(
      std::count_if(checks.checks().begin(), checks.checks().end(),
                    [&](const v1::ClusterCheck& check) { return check.result() == result; }));
}

}  // namespace

std::string CheckReport(const v1::ClusterChecks& checks) {
  std::string text;
  for (int i = 0; i < checks.checks_size(); ++i) {
    const v1::ClusterCheck& check = checks.checks(i);
    text += fmt::format("{:<8}{}: {}\n", Word(check.result()), OneLine(check.subject()),
                        OneLine(check.seen()));
    // Lines of one cause have their remedy once, below the last of them.
    const bool goes_on = std::any_of(
        checks.checks().begin() + i + 1, checks.checks().end(),
        [&](const v1::ClusterCheck& later) { return later.remedy() == check.remedy(); });
    if (!check.remedy().empty() && !goes_on)
      text += fmt::format("        -> {}\n", OneLine(check.remedy()));
  }
  return text +
         fmt::format("{} ok, {} warn, {} fail, {} skipped\n", Count(checks, v1::CHECK_RESULT_OK),
                     Count(checks, v1::CHECK_RESULT_WARN), Count(checks, v1::CHECK_RESULT_FAIL),
                     Count(checks, v1::CHECK_RESULT_SKIPPED));
}

bool HasFailed(const v1::ClusterChecks& checks) { return Count(checks, v1::CHECK_RESULT_FAIL) > 0; }

}  // namespace muster::agents
