#include "agents/slurm/submit.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "absl/time/time.h"
#include "agents/core/log_evidence.h"
#include "agents/slurm/call_gate.h"
#include "agents/slurm/fields.h"
#include "agents/slurm/refusals.h"
#include "contract/errors.h"
#include "contract/failures.h"
#include "contract/slurm_reasons.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

using LaunchKind = agents::LaunchOutcome::Kind;

constexpr std::string_view kFailed = "Batch job submission failed: ";

// The answer, or the way to it, broke: whether slurmctld has the job is not known.
constexpr std::array<std::string_view, 17> kUnclear = {"Socket timed out",
                                                       "Unable to contact slurm controller",
                                                       "connect failure",
                                                       "Munge",
                                                       "munge",
                                                       "Protocol authentication error",
                                                       "Zero Bytes were transmitted",
                                                       "Transport endpoint is not connected",
                                                       "Connection reset",
                                                       "Connection refused",
                                                       "Connection timed out",
                                                       "Broken pipe",
                                                       "Unexpected message received",
                                                       "Header lengths are longer",
                                                       "Insane message length",
                                                       "Slurm temporarily unable to accept job",
                                                       "Slurm backup controller in standby mode"};

// Local complaints of sbatch: nothing was sent.
constexpr std::array<std::string_view, 8> kNotSent = {
    "unrecognized option",   "specification",   "This does not look like a batch script",
    "Batch script is empty", "DOS line breaks", "Unable to open file",
    "Invalid argument",      "Invalid option"};

template <typename Table>
bool HasOneOf(std::string_view text, const Table& table) {
  return std::any_of(table.begin(), table.end(), [&](std::string_view words) {
    return text.find(words) != std::string_view::npos;
  });
}

// --parsable: "17" or "17;cluster", on a line of its own; a site's wrapper may print others.
std::optional<uint64_t> JobIdIn(std::string_view output) {
  std::optional<uint64_t> found;
  for (std::string_view line : Lines(output)) {
    const std::optional<uint64_t> id = ParseNumber<uint64_t>(line.substr(0, line.find(';')));
    if (!id.has_value() || *id == 0) continue;
    if (found.has_value() && found != id) return std::nullopt;
    found = id;
  }
  return found;
}

std::string WordsOf(const hosts::CommandResult& result) {
  const std::string end = result.signal != 0 ? fmt::format("ended by signal {}", result.signal)
                                             : fmt::format("exit code {}", result.exit_code);
  std::string words = fmt::format("sbatch: {}", end);
  for (const std::string* text : {&result.stdout_data, &result.stderr_data}) {
    for (std::string_view line : Lines(*text)) words += fmt::format("\n{}", line);
  }
  return words;
}

// Slurm names the limit on a line before the refusal: "sbatch: error: QOSMaxCpuPerUserLimit".
std::string ReasonBefore(std::string_view stderr_text) {
  constexpr std::string_view kError = "error: ";
  for (std::string_view line : Lines(stderr_text)) {
    const size_t at = line.find(kError);
    if (at == std::string_view::npos || line.find(kFailed) != std::string_view::npos) continue;
    const std::string explained = contract::ExplainSlurmReason(line.substr(at + kError.size()));
    if (!explained.empty()) return explained;
  }
  return {};
}

}  // namespace

SubmitOutcome ClassifySubmit(const absl::StatusOr<hosts::CommandResult>& result) {
  if (!result.ok()) return NoAnswer(result.status());
  SubmitOutcome outcome;
  outcome.words = WordsOf(*result);
  const std::string& said = result->stderr_data;
  if (result->ok()) {
    const std::optional<uint64_t> id = JobIdIn(result->stdout_data);
    if (id.has_value()) outcome.kind = LaunchKind::kLaunched;
    outcome.job_id = id.value_or(0);
    return outcome;
  }
  if (result->signal != 0 || HasOneOf(said, kUnclear)) return outcome;
  if (const size_t at = said.find(kFailed); at != std::string::npos) {
    const std::string_view words = std::string_view(said).substr(at + kFailed.size());
    return ClassifyError(words.substr(0, words.find('\n')), ReasonBefore(said),
                         std::move(outcome.words));
  }
  if (HasOneOf(said, kNotSent)) {
    SubmitOutcome refused =
        NotSent(fmt::format("sbatch did not take the run's options. It said: {}", said));
    refused.words = std::move(outcome.words);
    return refused;
  }
  outcome.unknown_words = true;
  return outcome;
}

SubmitOutcome ClassifyError(std::string_view slurm_words, std::string_view limit,
                            std::string all_words) {
  SubmitOutcome outcome;
  outcome.words = std::move(all_words);
  if (HasOneOf(slurm_words, kUnclear)) return outcome;
  const Refusal* refusal = FindRefusal(slurm_words);
  if (refusal == nullptr) {
    outcome.unknown_words = true;
    return outcome;
  }
  outcome.kind = LaunchKind::kRefused;
  outcome.failure = contract::MakeFailure(
      v1::FAILURE_CODE_LAUNCH_REFUSED, refusal->failure_class,
      {.detail = std::string(slurm_words),
       .meaning = fmt::format("{}{}{}", refusal->meaning, limit.empty() ? "" : ": ", limit),
       .remedy = std::string(refusal->remedy)});
  outcome.is_full = limit.find("SubmitJob") != std::string_view::npos;
  outcome.failure.set_retriable(refusal->retriable || outcome.is_full);
  agents::AddQuote("sbatch", slurm_words, &outcome.failure);
  return outcome;
}

SubmitOutcome NotSent(std::string words) {
  SubmitOutcome outcome;
  outcome.kind = LaunchKind::kRefused;
  outcome.failure =
      contract::MakeFailure(v1::FAILURE_CODE_JOB_INVALID, v1::FAILURE_CLASS_CONFIG,
                            {.detail = words, .remedy = "Correct the slurm section of the job."});
  outcome.words = std::move(words);
  return outcome;
}

SubmitOutcome NoAnswer(const absl::Status& status) {
  SubmitOutcome outcome;
  if (CallGate::HadNoTurn(status)) outcome.kind = LaunchKind::kDeferred;
  outcome.words = ToStd(status.message());
  return outcome;
}

v1::Failure UnknownRefusal(std::string_view words) {
  return contract::MakeFailure(
      v1::FAILURE_CODE_LAUNCH_REFUSED, v1::FAILURE_CLASS_CONFIG,
      {.detail = std::string(words),
       .meaning = "several tries failed, and Slurm has no job of the run",
       .remedy = "Look at Slurm's words; if they do not help, ask the cluster's administrator."});
}

}  // namespace muster::slurm
