#include "agents/slurm/command_scheduler.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "agents/hosts/remote_script.h"
#include "agents/slurm/fields.h"
#include "agents/slurm/job_errors.h"
#include "contract/text.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::slurm {
namespace {

// One scancel has at most this many jobs. It tells slurmctld about each by itself, and 500 take it
// a quarter of a second.
constexpr size_t kMaxJobsInCall = 500;

std::string UnreachableHint(const absl::Status& status) {
  return fmt::format(
      "Slurm does not answer: {}. Check that this host is a login node of the cluster (scontrol "
      "ping), that slurm_conf or SLURM_CONF names its slurm.conf, and that munge runs",
      ToStd(status.message()));
}

// Returns the words of a refusal without the name of the command that printed them.
std::string_view LastWords(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  constexpr std::string_view kPrefix = "sbatch: ";
  return text.starts_with(kPrefix) ? text.substr(kPrefix.size()) : text;
}

}  // namespace

absl::StatusOr<ClusterSettings> CommandScheduler::Probe() {
  for (const char* command : {"sbatch", "squeue", "scancel", "sinfo", "scontrol"}) {
    if (absl::Status status = CheckCommand(command); !status.ok()) return status;
  }
  absl::StatusOr<ClusterSettings> settings = Settings();
  if (absl::IsUnavailable(settings.status()))
    return absl::UnavailableError(UnreachableHint(settings.status()));
  if (settings.ok() && settings->keeps_accounting) {
    if (absl::Status status = CheckCommand("sacct"); !status.ok()) return status;
  }
  return settings;
}

absl::Status CommandScheduler::CheckCommand(const std::string& name) {
  const absl::Status status = commands_->Check(name);
  if (status.ok()) return status;
  return absl::FailedPreconditionError(fmt::format(
      "{} cannot be run on {}: {}. Install Slurm's client commands there, or set bin_dir "
      "to where they are",
      name, host_->Name(), ToStd(status.message())));
}

absl::StatusOr<ClusterSettings> CommandScheduler::Settings() {
  const absl::StatusOr<std::string> output = commands_->Ask(SettingsArguments());
  if (!output.ok()) return output.status();
  return ParseSettings(*output);
}

absl::StatusOr<std::vector<v1::Pool>> CommandScheduler::Pools() {
  const absl::StatusOr<std::string> output = commands_->Ask(PoolArguments());
  if (!output.ok()) return output.status();
  return ParsePools(*output);
}

absl::StatusOr<std::vector<Partition>> CommandScheduler::Partitions() {
  const absl::StatusOr<std::string> output = commands_->Ask(PartitionArguments());
  if (!output.ok()) return output.status();
  return ParsePartitions(*output);
}

absl::StatusOr<std::vector<v1::Node>> CommandScheduler::Nodes() {
  const absl::StatusOr<std::string> output = commands_->Ask(NodeArguments());
  if (!output.ok()) return output.status();
  return ParseNodes(*output);
}

absl::StatusOr<std::vector<QueuedJob>> CommandScheduler::WholeQueue() {
  const absl::StatusOr<std::string> output = commands_->Ask(WholeQueueArguments());
  if (!output.ok()) return output.status();
  return ParseWholeQueue(*output);
}

std::optional<Access> CommandScheduler::CheckAccess(agents::CheckList* checks) {
  std::vector<std::pair<std::string, absl::Status>> commands;
  for (const char* name :
       {"sbatch", "srun", "squeue", "scancel", "sinfo", "scontrol", "sacct", "sacctmgr"}) {
    commands.emplace_back(name, commands_->Check(name));
  }
  if (!JudgeCommands(host_->Name(), commands, checks)) {
    checks->Skip(v1::CHECK_CODE_SCHEDULER, "slurmctld", "Slurm's commands are missing");
    return std::nullopt;
  }
  const absl::StatusOr<hosts::CommandResult> ping = commands_->Run({"scontrol", "ping"});
  Access access;
  access.asked.begin = absl::Now();
  const absl::StatusOr<std::string> config = commands_->Ask(SettingsArguments());
  access.asked.end = absl::Now();
  if (!JudgeController(ping, config, checks)) return std::nullopt;
  absl::StatusOr<ClusterSettings> settings = ParseSettings(*config);
  if (!settings.ok()) {
    checks->Fail(v1::CHECK_CODE_VERSION, "Slurm's version",
                 std::string(ToStd(settings.status().message())),
                 "see what scontrol show config prints");
    return std::nullopt;
  }
  access.settings = *std::move(settings);
  access.needs_association = NeedsAssociation(*config);
  access.controller_time = ControllerTime(*config);
  return access;
}

absl::StatusOr<std::vector<Association>> CommandScheduler::Associations(
    const ClusterSettings& settings, const std::string& user) {
  const absl::StatusOr<std::string> output = commands_->Ask(AssociationArguments(settings, user));
  if (!output.ok()) return output.status();
  return ParseAssociations(*output);
}

absl::StatusOr<std::vector<std::string>> CommandScheduler::KnownNodes(
    const std::vector<std::string>& names) {
  // sinfo says nothing about names that it does not know.
  const absl::StatusOr<std::string> output =
      commands_->Ask({"sinfo", "--noheader", "--Node", "--format=%N",
                      fmt::format("--nodes={}", fmt::join(names, ","))});
  if (!output.ok()) return output.status();
  const std::vector<std::string_view> lines = Lines(*output);
  return std::vector<std::string>(lines.begin(), lines.end());
}

SubmitOutcome CommandScheduler::Submit(const Submission& submission) {
  std::vector<std::string> argv = {"sbatch", "--parsable"};
  for (std::string& word : SbatchArguments(submission)) argv.push_back(std::move(word));
  return ClassifySubmit(commands_->RunSbatch(std::move(argv)));
}

absl::StatusOr<std::string> CommandScheduler::EstimateStart(const Submission& submission) {
  std::vector<std::string> argv = {"sbatch", "--test-only"};
  argv.insert(argv.end(), submission.options.begin(), submission.options.end());
  argv.emplace_back("--wrap=:");
  const absl::StatusOr<hosts::CommandResult> result = commands_->Run(std::move(argv));
  if (!result.ok()) return absl::UnavailableError(result.status().message());
  // The estimate is on stderr, too.
  std::string words(LastWords(result->stderr_data));
  if (result->ok()) return words;
  const SubmitOutcome outcome = ClassifySubmit(result);
  const bool could_not_ask =
      outcome.kind == agents::LaunchOutcome::Kind::kDeferred ||
      (outcome.kind == agents::LaunchOutcome::Kind::kUnclear && outcome.unknown_words.empty());
  return could_not_ask ? absl::UnavailableError(words) : absl::InvalidArgumentError(words);
}

absl::StatusOr<std::vector<QueueRow>> CommandScheduler::QueueOfAll() {
  const std::string separator = std::string(1, kSeparator) + hosts::NewNonce();
  const absl::StatusOr<std::string> output = commands_->Ask(QueueArgumentsForAll(separator));
  if (!output.ok()) return output.status();
  return ParseQueueOfAll(*output, separator);
}

absl::StatusOr<std::vector<QueueRow>> CommandScheduler::Queue(std::string_view name) {
  if (of_all_users_) return QueueOfAll();
  const absl::StatusOr<std::string> output = commands_->Ask(QueueArguments(name));
  if (!output.ok()) return output.status();
  absl::StatusOr<std::vector<QueueRow>> rows = ParseQueue(*output);
  if (!rows.ok()) return absl::UnavailableError(rows.status().message());
  return rows;
}

absl::StatusOr<std::vector<HistoryRow>> CommandScheduler::HistoryOf(const std::vector<JobId>& ids,
                                                                    absl::Time since) {
  return History(HistoryArguments(ids, since));
}

absl::StatusOr<std::vector<HistoryRow>> CommandScheduler::HistoryOf(std::string_view name,
                                                                    absl::Time since) {
  return History(HistoryArguments(name, since));
}

absl::StatusOr<std::string> CommandScheduler::AskAccounting(std::vector<std::string> argv) {
  absl::StatusOr<std::string> output = commands_->Ask(std::move(argv));
  if (!output.ok() && IsAccountingDisabled(ToStd(output.status().message())))
    return absl::FailedPreconditionError(output.status().message());
  return output;
}

absl::StatusOr<std::vector<HistoryRow>> CommandScheduler::History(std::vector<std::string> argv) {
  const absl::StatusOr<std::string> output = AskAccounting(std::move(argv));
  if (!output.ok()) return output.status();
  absl::StatusOr<std::vector<HistoryRow>> rows = ParseHistory(*output);
  if (!rows.ok()) return absl::UnavailableError(rows.status().message());
  return rows;
}

absl::StatusOr<std::vector<UsageRow>> CommandScheduler::UsageOf(const std::vector<JobId>& ids,
                                                                absl::Time since) {
  const absl::StatusOr<std::string> output = AskAccounting(UsageArguments(ids, since));
  if (!output.ok()) return output.status();
  absl::StatusOr<std::vector<UsageRow>> rows = ParseUsage(*output);
  if (!rows.ok()) return absl::UnavailableError(rows.status().message());
  return rows;
}

absl::StatusOr<HistoryRow> CommandScheduler::ShowJob(const JobId& id) {
  const absl::StatusOr<std::string> output = commands_->Ask(ShowJobArguments(id));
  if (!output.ok()) {
    if (IsUnknownJob(ToStd(output.status().message())))
      return absl::NotFoundError(output.status().message());
    return output.status();
  }
  std::optional<HistoryRow> row = ParseShowJob(*output);
  if (row.has_value()) return *std::move(row);
  return absl::UnavailableError(fmt::format("scontrol printed what is no job {}: \"{}\"",
                                            id.ToString(),
                                            std::string_view(*output).substr(0, 200)));
}

size_t CommandScheduler::MaxJobsInCall() const { return kMaxJobsInCall; }

std::vector<absl::Status> CommandScheduler::RunFor(const std::vector<JobId>& ids,
                                                   std::vector<std::string> argv) {
  const std::string name = argv.front();
  const absl::StatusOr<hosts::CommandResult> result = commands_->Run(std::move(argv));
  if (!result.ok()) {
    return std::vector<absl::Status>(
        ids.size(), CouldNotRun(result.status(),
                                fmt::format("{}: {}", name, ToStd(result.status().message()))));
  }
  const JobErrors errors(name, *result);
  std::vector<absl::Status> statuses;
  for (const JobId& id : ids) statuses.push_back(errors.Of(id));
  return statuses;
}

std::vector<absl::Status> CommandScheduler::CancelMany(const std::vector<JobId>& ids) {
  std::vector<std::string> argv = {"scancel"};
  for (const JobId& id : ids) argv.push_back(id.ToString());
  std::vector<absl::Status> statuses = RunFor(ids, std::move(argv));
  for (absl::Status& status : statuses) {
    if (absl::IsNotFound(status) || absl::IsFailedPrecondition(status)) status = absl::OkStatus();
  }
  return statuses;
}

absl::Status CommandScheduler::Signal(const JobId& id, int number, SignalTo to) {
  std::vector<std::string> argv = {"scancel", fmt::format("--signal={}", number)};
  if (to == SignalTo::kBatch) argv.emplace_back("--batch");
  if (to == SignalTo::kAll) argv.emplace_back("--full");
  argv.push_back(id.ToString());
  return RunFor({id}, std::move(argv)).front();
}

// Runs as the jobs' own user, also where the agent is an operator: their user may release them.
std::vector<absl::Status> CommandScheduler::SetHeldMany(const std::vector<JobId>& ids, bool held) {
  std::vector<std::string> words;
  for (const JobId& id : ids) words.push_back(id.ToString());
  return RunFor(ids,
                {"scontrol", held ? "uhold" : "release", fmt::format("{}", fmt::join(words, ","))});
}

}  // namespace muster::slurm
