#include "agents/slurm/job_errors.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "agents/slurm/fields.h"
#include "agents/slurm/history.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

// Bytes of a command's words that an error quotes.
constexpr size_t kQuotedErrorBytes = 1000;

struct Line {
  std::string_view job;
  std::string_view words;
};

// Reads "scancel: error: Kill job error on job id 12_3: Access/permission denied" (scancel), "Job
// has already finished for job 12" and "12_3: Invalid job id specified" (scontrol).
std::optional<Line> ParseLine(std::string_view line) {
  constexpr std::string_view kCancel = "scancel: error: Kill job error on job id ";
  constexpr std::string_view kFor = " for job ";
  if (line.starts_with(kCancel)) line.remove_prefix(kCancel.size());
  Line parsed;
  if (const size_t at = line.rfind(kFor); at != line.npos) {
    parsed = {line.substr(at + kFor.size()), line.substr(0, at)};
  } else if (const size_t colon = line.find(": "); colon != line.npos) {
    parsed = {line.substr(0, colon), line.substr(colon + 2)};
  }
  if (!ParseJobId(parsed.job).has_value()) return std::nullopt;
  return parsed;
}

// Recognises the line behind those about jobs, in which scontrol says how the last one fared, even
// if "No error".
bool IsSummary(std::string_view line) { return line.starts_with("slurm_suspend error: "); }

}  // namespace

JobErrors::JobErrors(std::string name, const hosts::CommandResult& result)
    : name_(std::move(name)) {
  if (result.ok()) return;
  bool tells_all = false;
  for (const std::string_view line : Lines(result.stderr_data)) {
    if (const std::optional<Line> said = ParseLine(line); said.has_value()) {
      words_.insert_or_assign(std::string(said->job), std::string(said->words));
      tells_all = true;
    } else if (!IsSummary(line)) {
      tells_all = false;
      break;
    }
  }
  if (tells_all) return;
  const std::string end = result.signal != 0
                              ? fmt::format("was ended by signal {}", result.signal)
                              : fmt::format("ended with exit code {}", result.exit_code);
  failure_ = fmt::format("{} {}: {}", name_, end,
                         std::string_view(result.stderr_data).substr(0, kQuotedErrorBytes));
}

absl::Status JobErrors::Of(const JobId& id) const {
  const auto said = words_.find(id.ToString());
  if (said == words_.end())
    return failure_.empty() ? absl::OkStatus() : absl::UnavailableError(failure_);
  const std::string message = fmt::format("{}: {}", name_, said->second);
  if (IsUnknownJob(said->second)) return absl::NotFoundError(message);
  if (HasEndedAlready(said->second)) return absl::FailedPreconditionError(message);
  return absl::UnavailableError(message);
}

}  // namespace muster::slurm
