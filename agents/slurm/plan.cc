#include "agents/slurm/plan.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "agents/hosts/shell_quote.h"
#include "agents/slurm/fields.h"
#include "agents/slurm/queue.h"
#include "agents/slurm/submit.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

constexpr char kSubject[] = "sbatch --test-only";
constexpr std::string_view kStartsAt = " to start at ";

// Returns the word behind `before`; empty if there is none.
std::string_view WordAfter(std::string_view text, std::string_view before) {
  const size_t at = text.find(before);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + before.size());
  return text.substr(0, text.find_first_of(" \n"));
}

// Replaces the seconds that SLURM_TIME_FORMAT=%s makes.
std::string WithReadableTime(std::string words) {
  const std::string_view start = WordAfter(words, kStartsAt);
  const std::optional<absl::Time> time = ParseEpoch(start);
  if (!time.has_value()) return words;
  return words.replace(static_cast<size_t>(start.data() - words.data()), start.size(),
                       absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", *time, absl::UTCTimeZone()));
}

// Finds slurmctld's own words, behind those of sbatch: the same as in a real refusal.
std::string_view SlurmWords(std::string_view words) {
  constexpr std::string_view kFailure = "allocation failure: ";
  const size_t at = words.find(kFailure);
  if (at == std::string_view::npos) return {};
  words.remove_prefix(at + kFailure.size());
  return words.substr(0, words.find('\n'));
}

void TakeRefusal(std::string_view words, agents::CheckList* checks) {
  const SubmitOutcome refused =
      ClassifyError(SlurmWords(words), LimitIn(words), std::string(words));
  if (refused.kind != agents::LaunchOutcome::Kind::kRefused) {
    return checks->Fail(v1::CHECK_CODE_TRIAL, kSubject,
                        fmt::format("Slurm would refuse the job: {}", words),
                        "Look at Slurm's words; if they do not help, ask the cluster's "
                        "administrator.");
  }
  checks->Fail(v1::CHECK_CODE_TRIAL, kSubject,
               fmt::format("Slurm would refuse the job: {}. Slurm said: {}",
                           refused.failure.meaning(), words),
               refused.failure.remedy());
}

// `whose` is "the job", or which role.
absl::StatusOr<std::string> CommandText(const std::string& whose, const v1::Command& command) {
  if (command.has_script()) {
    return fmt::format("# ---- {}'s script, which batch.sh starts\n{}\n", whose, command.script());
  }
  return CommentLine(fmt::format("---- {}'s command, which batch.sh starts:", whose),
                     {command.argv().args().begin(), command.argv().args().end()});
}

}  // namespace

std::optional<StartEstimate> ParseEstimate(std::string_view words) {
  const std::optional<absl::Time> start = ParseEpoch(WordAfter(words, kStartsAt));
  if (!start.has_value()) return std::nullopt;
  return StartEstimate{*start, ExpandNodeList(WordAfter(words, " on nodes "))};
}

void TakeEstimate(const absl::StatusOr<std::string>& words, agents::CheckList* checks,
                  v1::JobPlan* plan) {
  const std::string_view said = ToStd(words.status().message());
  if (absl::IsUnimplemented(words.status()))
    return checks->Skip(v1::CHECK_CODE_TRIAL, kSubject, std::string(said));
  if (absl::IsInvalidArgument(words.status())) return TakeRefusal(said, checks);
  if (!words.ok()) {
    return checks->Fail(v1::CHECK_CODE_TRIAL, kSubject,
                        fmt::format("it could not be asked: {}", said),
                        "muster check CLUSTER says what is wrong");
  }
  const std::optional<StartEstimate> estimate = ParseEstimate(*words);
  if (!estimate.has_value()) return checks->Warn(v1::CHECK_CODE_TRIAL, kSubject, *words);
  checks->Ok(v1::CHECK_CODE_TRIAL, kSubject, WithReadableTime(*words));
  plan->mutable_estimated_start_time()->set_seconds(absl::ToUnixSeconds(estimate->start));
  plan->mutable_nodes()->Assign(estimate->nodes.begin(), estimate->nodes.end());
}

absl::StatusOr<std::string> CommentLine(std::string text, const std::vector<std::string>& words) {
  text.insert(0, "# ");
  for (const std::string& word : words) {
    absl::StatusOr<std::string> quoted = hosts::ShellQuote(word);
    if (!quoted.ok()) return quoted.status();
    text += " " + *quoted;
  }
  return text + "\n";
}

std::string FilesText(const std::vector<RunFile>& files, const RunPaths& paths) {
  std::vector<std::string_view> names;
  for (const RunFile& file : files)
    names.push_back(std::string_view(file.path).substr(paths.directory().size() + 1));
  std::sort(names.begin(), names.end());
  return fmt::format("# ---- files written before sbatch, in {}:\n# {}\n", paths.directory(),
                     fmt::join(names, " "));
}

std::string BatchScriptText() { return fmt::format("# ---- batch.sh\n{}", BatchScript()); }

absl::StatusOr<std::string> ProgramsText(const v1::JobSpec& spec) {
  std::string text;
  if (!spec.setup().empty()) {
    text = fmt::format("# ---- the job's setup, which batch.sh runs before the programs\n{}\n",
                       spec.setup());
  }
  if (spec.roles().empty()) {
    const absl::StatusOr<std::string> command = CommandText("the job", spec.command());
    if (!command.ok()) return command.status();
    return text + *command;
  }
  for (const v1::Role& role : spec.roles()) {
    const absl::StatusOr<std::string> command =
        CommandText(fmt::format("role {} (nodes: {}, the first: {}{})", role.name(), role.nodes(),
                                role.first_node(), role.leads() ? "; it leads" : ""),
                    role.command());
    if (!command.ok()) return command.status();
    text += *command;
  }
  return text;
}

}  // namespace muster::slurm
