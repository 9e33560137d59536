// muster sky logs: a job's log, and how it ended.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "clients/cli/exit_code.h"
#include "clients/cli/follow.h"
#include "clients/cli/sky/cluster_jobs.h"
#include "clients/cli/sky/follow_job.h"
#include "clients/cli/sky/job_words.h"
#include "clients/cli/sky/verbs.h"
#include "clients/cli/slurm/given.h"
#include "clients/cli/slurm/query.h"
#include "clients/cli/tail.h"
#include "clients/cli/text.h"
#include "contract/characters.h"
#include "contract/parts.h"
#include "contract/states.h"

namespace muster::cli::sky {
namespace {

using client::slurm::Option;
using client::slurm::Setting;
using enum Option::Argument;

constexpr std::array kLogsOptions = {
    Option{"config", 0},
    Option{"follow", 0, kNone},
    Option{"no-follow", 0, kNone},
    Option{"provision", 0, kNone},
    Option{"status", 0, kNone},
    Option{"sync-down", 's', kNone},
    Option{"tail", 0},
    Option{"worker", 'w'},
};
constexpr std::string_view kNoProvisioningLogs =
    "Muster provisions nothing; what became of a job says: muster show ID";
constexpr std::pair<std::string_view, std::string_view> kLogsRefused[] = {
    {"config", "muster's own settings are in ~/.config/muster/config.yaml"},
    {"provision", kNoProvisioningLogs},
    {"sync-down", "use: muster logs ID > FILE"},
    {"worker", kNoProvisioningLogs},
};

struct AskedLogs {
  std::string cluster;
  std::optional<uint64_t> job;  // none: the latest
  uint32_t tail_lines = 0;      // 0: all
  bool follow = true;
  bool only_status = false;
};

absl::StatusOr<AskedLogs> ReadLogs(const Words& words) {
  const auto read = client::slurm::ReadCommandWords(kLogsOptions, words);
  if (!read.ok()) return read.status();
  const client::slurm::Settings& given = read->options;
  if (absl::Status status = CheckRefused(given, kLogsRefused); !status.ok()) return status;
  if (read->operands.empty()) {
    return absl::InvalidArgumentError("name a cluster: muster sky logs CLUSTER [JOB]");
  }
  if (read->operands.size() > 2) {
    return absl::InvalidArgumentError("one job at a time: muster sky logs CLUSTER [JOB]");
  }
  AskedLogs asked;
  asked.cluster = read->operands[0];
  if (read->operands.size() == 2) {
    const auto id = ParseJobId(read->operands[1]);
    if (!id.ok()) return id.status();
    asked.job = *id;
  }
  asked.only_status = given.Find("status") != nullptr;
  for (const Setting& setting : given.settings) {
    if (setting.option->name == "follow") asked.follow = true;
    if (setting.option->name == "no-follow") asked.follow = false;
  }
  const Setting* tail = given.Find("tail");
  if (tail == nullptr) return asked;
  if (asked.only_status) {
    return absl::InvalidArgumentError("--status and --tail exclude each other");
  }
  const auto lines = contract::ParseNumber<uint32_t>(tail->value);
  if (!lines.has_value() || *lines > kMaxTailLines) {
    return absl::InvalidArgumentError(
        fmt::format("--tail: {} is not a number of lines, 1 to {}, or 0 for all",
                    contract::Quoted(tail->value), kMaxTailLines));
  }
  asked.tail_lines = *lines;
  return asked;
}

// NOT_FOUND: there is none.
absl::StatusOr<v1::Job> WantedJob(Session& session, const AskedLogs& asked) {
  if (asked.job) return FindJob(session.client, asked.cluster, *asked.job);
  const absl::StatusOr<std::string> user = CurrentUser(session);
  if (!user.ok()) return user.status();
  const auto latest = FindQueue(session.client, {.cluster = asked.cluster, .user = *user});
  if (!latest.ok()) return latest.status();
  if (latest->jobs.empty()) {
    return absl::NotFoundError(
        fmt::format("No job of yours found on cluster {}", contract::Quoted(asked.cluster)));
  }
  const uint64_t id = latest->jobs.front().id();
  session.terminal.Note(fmt::format("the latest job is {}", id));
  return FindJob(session.client, asked.cluster, id);
}

// Prints the present log; if the job has ended, to its end.
int PrintLogs(Session& session, const v1::Job& job, const LogChoice& choice) {
  if (job.runs().empty()) {
    session.terminal.Note(Summary(job) + "; it has no log yet");
    return contract::IsTerminal(job.state()) ? CodeOf(job) : kOk;
  }
  const v1::Run& run = *job.runs().rbegin();
  const bool is_on_its_way = contract::IsTerminal(run.state()) && !run.logs_complete();
  for (LogPart& part : LogParts(job.id(), run.number(), session.call.raw, choice)) {
    part.request.set_follow(is_on_its_way);
    const auto copied = CopyLog(session.client, session.terminal, part.request, part.target);
    if (!copied.ok()) return FailOther(session, copied.status());
  }
  return contract::IsTerminal(job.state()) ? CodeOf(job) : kOk;
}

}  // namespace

int Logs(Session& session, const Words& words) {
  const absl::StatusOr<AskedLogs> asked = ReadLogs(words);
  if (!asked.ok()) return FailUsage(session, asked.status());
  if (absl::Status status = CheckCluster(session.client, asked->cluster); !status.ok()) {
    return FailOther(session, status);
  }
  const absl::StatusOr<v1::Job> job = WantedJob(session, *asked);
  if (!job.ok()) {
    FailOther(session, job.status());
    return absl::IsNotFound(job.status()) ? static_cast<int>(kNotFound) : static_cast<int>(kError);
  }
  if (asked->only_status) {
    session.terminal.Out(fmt::format("Job {}: {}\n", job->id(), StatusWord(*job)));
    return CodeOf(*job);
  }
  const bool goes_on = asked->follow && !contract::IsTerminal(job->state());
  session.interrupt->SetRemark(
      fmt::format("{} with: muster sky logs {} {}",
                  goes_on ? "no longer waiting; the job goes on. Come back" : "interrupted; again",
                  Harmless(asked->cluster), job->id()));
  LogChoice choice = ChoiceFor(session, *job);
  choice.tail_lines = asked->tail_lines;
  return asked->follow ? FollowJob(session, job->id(), choice) : PrintLogs(session, *job, choice);
}

}  // namespace muster::cli::sky
