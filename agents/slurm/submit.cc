#include "agents/slurm/submit.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "absl/time/time.h"
#include "agents/slurm/fields.h"
#include "agents/slurm/reasons.h"
#include "contract/errors.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

using Kind = agent::LaunchOutcome::Kind;

constexpr std::string_view kFailed = "Batch job submission failed: ";

// What slurmctld answers when it will not have a job. The text is Slurm's (slurm_errno.c); the
// first row that fits is taken.
struct Refusal {
  std::string_view text;
  v1::FailureClass failure_class;
  std::string_view meaning;
  std::string_view remedy;
};
constexpr v1::FailureClass kConfig = v1::FAILURE_CLASS_CONFIG;
constexpr v1::FailureClass kInfra = v1::FAILURE_CLASS_INFRA;
constexpr std::array kRefusals = {
    Refusal{"Job violates accounting/QOS policy", kConfig,
            "it is over a limit of its account or QOS",
            "Ask for less, wait until other jobs have ended, or use another QOS (slurm.qos)."},
    Refusal{"Invalid account or account/partition combination", kConfig,
            "the account does not exist, or its user may not use it there",
            "Set slurm.account to an account of yours (sacctmgr show associations)."},
    Refusal{"Invalid partition name", kConfig, "there is no such partition",
            "Set placement.pool to a pool that `muster clusters` shows."},
    Refusal{"No partition specified or system default partition", kConfig,
            "the cluster has no default partition",
            "Set placement.pool to a pool that `muster clusters` shows."},
    Refusal{"Requested time limit is invalid", kConfig,
            "the time limit is above what the partition allows",
            "Set a lower time_limit, or use a partition that allows more."},
    Refusal{
        "Requested node configuration is not available", kConfig, "no node is like that",
        "Ask for fewer CPUs, less memory or fewer GPUs on each node, or use another partition."},
    Refusal{"Requested partition configuration not available now", kConfig,
            "the partition cannot hold it now", "Ask for less, or use another partition."},
    Refusal{"Invalid generic resource", kConfig, "the cluster has no such GPUs",
            "Ask for a GPU type and count that `muster clusters` shows."},
    Refusal{"Invalid Trackable RESource", kConfig, "the cluster has no such GPUs",
            "Ask for a GPU type and count that `muster clusters` shows."},
    Refusal{"Invalid qos specification", kConfig,
            "the QOS does not exist, or its user may not use it",
            "Set slurm.qos to a QOS of yours (sacctmgr show associations)."},
    Refusal{"User's group not permitted to use this partition", kConfig,
            "its user may not use the partition",
            "Use another partition, or ask an administrator for access."},
    Refusal{"Access/permission denied", kConfig, "its user may not do this",
            "Ask an administrator for access."},
    Refusal{"Node count specification invalid", kConfig,
            "the partition does not give that many nodes",
            "Ask for fewer nodes, or use another partition."},
    Refusal{"More processors requested than permitted", kConfig,
            "the partition does not have that many CPUs",
            "Ask for fewer CPUs or nodes, or use another partition."},
    Refusal{"Memory required by task is not available", kConfig, "no node has that much memory",
            "Ask for less memory, or use another partition."},
    Refusal{"Invalid node name specified", kConfig, "there is no such node",
            "Correct slurm.nodelist or slurm.exclude (sinfo -N shows the nodes)."},
    Refusal{"Invalid feature specification", kConfig, "no node has such a feature",
            "Correct slurm.constraint (sinfo -o %f shows the features)."},
    Refusal{"Requested reservation is invalid", kConfig, "the reservation does not exist",
            "Correct slurm.reservation (scontrol show reservation)."},
    Refusal{"Requested reservation not available", kConfig, "the reservation is not open",
            "Correct slurm.reservation (scontrol show reservation)."},
    Refusal{"Access denied to requested reservation", kConfig,
            "its user may not use the reservation", "Ask who made the reservation."},
    Refusal{"Job dependency problem", kConfig, "the cluster does not take its dependency", ""},
    Refusal{"Invalid job name", kConfig,
            "the cluster has a rule for job names that the run key breaks",
            "Ask an administrator to let it through."},
    Refusal{"Pathname of a file, directory or other parameter too long", kConfig,
            "a value is too long",
            "Use a shorter run_dir, or shorter values in the slurm section."},
    Refusal{"Job script too large", kConfig, "the cluster takes only small scripts",
            "Ask an administrator to raise max_script_size."},
    Refusal{"Required partition not available (inactive or drain)", kInfra,
            "the partition takes no jobs now", "Submit again later, or use another partition."},
    Refusal{"System submissions disabled", kInfra, "the cluster takes no jobs now",
            "Submit again later."},
    Refusal{"User's job submission is disabled", kInfra,
            "the cluster takes no jobs of this user now", "Ask an administrator."},
};

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
    const std::string explained = ExplainReason(line.substr(at + kError.size()));
    if (!explained.empty()) return explained;
  }
  return {};
}

v1::Failure MakeFailure(v1::FailureClass failure_class, std::string message,
                        std::string_view suggestion) {
  v1::Failure failure;
  failure.set_failure_class(failure_class);
  failure.set_message(std::move(message));
  failure.set_suggestion(std::string(suggestion));
  return failure;
}

SubmitOutcome Refused(std::string_view slurm_words, const hosts::CommandResult& result,
                      SubmitOutcome outcome) {
  for (const Refusal& row : kRefusals) {
    if (!slurm_words.starts_with(row.text)) continue;
    const std::string reason = ReasonBefore(result.stderr_data);
    outcome.kind = Kind::kRefused;
    outcome.failure =
        MakeFailure(row.failure_class,
                    fmt::format("Slurm refused the run: {}{}. Slurm said: {}", row.meaning,
                                reason.empty() ? "" : ": " + reason, slurm_words),
                    row.remedy);
    return outcome;
  }
  outcome.unknown_words = true;
  return outcome;
}

}  // namespace

SubmitOutcome ClassifySubmit(const absl::StatusOr<hosts::CommandResult>& result) {
  SubmitOutcome outcome;
  if (!result.ok()) {
    outcome.words = result.status().ToString();
    return outcome;
  }
  outcome.words = WordsOf(*result);
  const std::string& said = result->stderr_data;
  if (result->ok()) {
    const std::optional<uint64_t> id = JobIdIn(result->stdout_data);
    if (id.has_value()) outcome.kind = Kind::kLaunched;
    outcome.job_id = id.value_or(0);
    return outcome;
  }
  if (result->signal != 0 || HasOneOf(said, kUnclear)) return outcome;
  if (const size_t at = said.find(kFailed); at != std::string::npos) {
    const std::string_view words = std::string_view(said).substr(at + kFailed.size());
    return Refused(words.substr(0, words.find('\n')), *result, std::move(outcome));
  }
  if (HasOneOf(said, kNotSent)) {
    outcome.kind = Kind::kRefused;
    outcome.failure = MakeFailure(
        kConfig, fmt::format("sbatch did not take the run's options. It said: {}", said),
        "Correct the slurm section of the job.");
    return outcome;
  }
  outcome.unknown_words = true;
  return outcome;
}

v1::Failure UnknownRefusal(std::string_view words) {
  return MakeFailure(
      kConfig,
      fmt::format("Slurm refused the run several times, and does not know it. It said: {}", words),
      "Look at Slurm's words; if they do not help, ask the cluster's administrator.");
}

}  // namespace muster::slurm
