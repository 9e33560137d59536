#include "agents/slurm/submit.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "absl/time/time.h"
#include "agents/core/log_evidence.h"
#include "agents/slurm/call_gate.h"
#include "agents/slurm/fields.h"
#include "contract/characters.h"
#include "contract/failures.h"
#include "contract/slurm_reasons.h"
#include "contract/slurm_refusals.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

using LaunchKind = agents::LaunchOutcome::Kind;

constexpr std::string_view kSbatch = "sbatch: ";
constexpr std::string_view kError = "error: ";
constexpr std::string_view kFailed = "Batch job submission failed: ";
// A message has this many bytes of sbatch's words; the evidence has all of them.
constexpr size_t kMaxSaidBytes = 500;

// The answer, or the way to it, broke: whether slurmctld has the job is not known.
constexpr std::array<std::string_view, 24> kUnclear = {"Socket timed out",
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
                                                       "Communication connection failure",
                                                       "Communication shutdown failure",
                                                       "Message receive failure",
                                                       "Message send failure",
                                                       "Resource temporarily unavailable",
                                                       "No route to host",
                                                       "Network is unreachable",
                                                       "Slurm temporarily unable to accept job",
                                                       "Slurm backup controller in standby mode"};

// Exit codes of a shell that cannot run sbatch, or finds none: nobody was asked.
constexpr int kNotExecutable = 126;
constexpr int kNoSuchCommand = 127;

// These are local complaints of sbatch, after which nothing was sent.
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

// Reads what --parsable prints, "17" or "17;cluster", on a line of its own; a site's wrapper may
// print others.
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

// Joins what sbatch said into a line, without its own name: a plug-in's words, which come first,
// tell more than Slurm's own behind them.
std::string SaidIn(std::string_view stderr_text) {
  std::string said;
  for (std::string_view line : Lines(stderr_text)) {
    for (const std::string_view prefix : {kSbatch, kError, kFailed}) {
      if (line.starts_with(prefix)) line.remove_prefix(prefix.size());
    }
    if (line.find_first_not_of(' ') == std::string_view::npos) continue;
    said += fmt::format("{}{}", said.empty() ? "" : "; ", line);
  }
  return std::string(contract::CutBetweenCharacters(said, kMaxSaidBytes));
}

}  // namespace

SubmitOutcome ClassifySubmit(const absl::StatusOr<hosts::CommandResult>& result) {
  // There is no sbatch, say, or it cannot be executed.
  if (hosts::NotStarted(result.status())) return NobodyAsked(ToStd(result.status().message()));
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
    outcome =
        ClassifyError(words.substr(0, words.find('\n')), LimitIn(said), std::move(outcome.words));
    if (!outcome.unknown_words.empty()) outcome.unknown_words = SaidIn(said);
    return outcome;
  }
  if (HasOneOf(said, kNotSent)) {
    SubmitOutcome refused =
        NotSent(fmt::format("sbatch did not take the run's options. It said: {}", said));
    refused.words = std::move(outcome.words);
    return refused;
  }
  const bool found_none =
      result->exit_code == kNotExecutable || result->exit_code == kNoSuchCommand;
  if (found_none && !JobIdIn(result->stdout_data).has_value()) return NobodyAsked(outcome.words);
  outcome.unknown_words = SaidIn(said);
  if (outcome.unknown_words.empty()) outcome.unknown_words = outcome.words;
  return outcome;
}

v1::StateReason LimitIn(std::string_view stderr_text) {
  for (std::string_view line : Lines(stderr_text)) {
    const size_t at = line.find(kError);
    if (at == std::string_view::npos || line.find(kFailed) != std::string_view::npos) continue;
    v1::StateReason limit = contract::SlurmReasonAlone(line.substr(at + kError.size()));
    if (!limit.message().empty()) return limit;
  }
  return {};
}

SubmitOutcome ClassifyError(std::string_view slurm_words, const v1::StateReason& limit,
                            std::string all_words) {
  SubmitOutcome outcome;
  outcome.words = std::move(all_words);
  if (slurm_words.empty() || HasOneOf(slurm_words, kUnclear)) return outcome;
  const contract::SlurmRefusal* refusal = contract::FindSlurmRefusal(slurm_words);
  if (refusal == nullptr) {
    outcome.unknown_words = slurm_words;
    return outcome;
  }
  outcome.kind = LaunchKind::kRefused;
  outcome.is_full = contract::IsFullForNow(limit);
  outcome.failure = contract::RefusedBySlurm(*refusal, slurm_words, limit);
  agents::AddQuote("sbatch", slurm_words, &outcome.failure);
  return outcome;
}

SubmitOutcome NotSent(std::string words) {
  SubmitOutcome outcome;
  outcome.kind = LaunchKind::kRefused;
  outcome.failure =
      contract::MakeFailure(v1::FAILURE_CODE_JOB_INVALID, v1::FAILURE_CLASS_CONFIG,
                            {.detail = words, .cause = contract::FailureCause::kSlurmOption});
  outcome.words = std::move(words);
  return outcome;
}

SubmitOutcome NobodyAsked(std::string_view words) {
  SubmitOutcome outcome;
  outcome.kind = LaunchKind::kDeferred;
  outcome.needs_pause = true;
  outcome.words = fmt::format("not submitted, sbatch could not be started: {}", words);
  return outcome;
}

SubmitOutcome NoAnswer(const absl::Status& status) {
  SubmitOutcome outcome;
  if (CallGate::HadNoTurn(status)) outcome.kind = LaunchKind::kDeferred;
  outcome.words = ToStd(status.message());
  return outcome;
}

v1::Failure UnknownRefusal(std::string_view slurm_words) {
  v1::Failure failure =
      contract::MakeFailure(v1::FAILURE_CODE_LAUNCH_REFUSED, v1::FAILURE_CLASS_CONFIG,
                            {.detail = std::string(slurm_words)});
  agents::AddQuote("sbatch", slurm_words, &failure);
  return failure;
}

}  // namespace muster::slurm
