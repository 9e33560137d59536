// muster sky queue: the jobs of clusters.
#include <fmt/format.h>

#include <array>
#include <string>

#include "absl/time/clock.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/sky/cluster_jobs.h"
#include "clients/cli/sky/job_words.h"
#include "clients/cli/sky/verbs.h"
#include "clients/cli/slurm/given.h"
#include "clients/cli/slurm/query.h"
#include "clients/cli/table.h"
#include "clients/cli/text.h"

namespace muster::cli::sky {
namespace {

using client::slurm::Option;
using enum Option::Argument;

// Nobody reads more rows; muster list has them all.
constexpr size_t kMaxRows = 1000;

constexpr std::array kOptions = {
    Option{"all-users", 'u', kNone},     Option{"config", 0},           Option{"output", 'o'},
    Option{"skip-finished", 's', kNone}, Option{"verbose", 'v', kNone},
};
constexpr std::pair<std::string_view, std::string_view> kRefused[] = {
    {"config", "muster's own settings are in ~/.config/muster/config.yaml"},
    {"output", "use: muster list --cluster NAME -o json"},
    {"verbose", "use: muster list --cluster NAME -o wide"},
};

// Reads the job with its runs: only these tell that it is being set up.
v1::Job WithRuns(Session& session, const v1::Job& job) {
  if (job.state() != v1::JOB_STATE_PENDING) return job;
  v1::GetJobRequest request;
  request.set_job_id(job.id());
  const auto response = session.client.GetJob(request);
  return response.ok() ? response->job() : job;
}

Table::Row RowOf(const v1::Job& job, const std::string& cluster, absl::Time now) {
  return {{fmt::format("{}", job.id())},
          {job.name().empty() ? "-" : Harmless(job.name())},
          {Harmless(job.user())},
          {AgoText(job.create_time(), now)},
          {AgoText(job.start_time(), now)},
          {RunText(job, now)},
          {ResourcesText(job.spec())},
          {std::string(StatusWord(job)), ColourOf(job.state())},
          {fmt::format("muster sky logs {} {}", Harmless(cluster), job.id())},
          {MusterWords(job)}};
}

int PrintQueue(Session& session, const QueueQuery& query) {
  const auto queue = FindQueue(session.client, query);
  if (!queue.ok()) return FailOther(session, queue.status());
  const absl::Time now = absl::Now();
  Table table({{"ID"},
               {"NAME"},
               {"USER"},
               {"SUBMITTED"},
               {"STARTED"},
               {"DURATION"},
               {"RESOURCES"},
               {"STATUS"},
               {"LOG"},
               {"MUSTER"}},
              session.terminal.colours());
  for (const v1::Job& job : queue->jobs) {
    table.Add(RowOf(WithRuns(session, job), query.cluster, now));
  }
  session.terminal.Out(fmt::format("Job queue of {} on cluster {}\n{}\n",
                                   query.user ? "current user" : "all users",
                                   Harmless(query.cluster), table.Take()));
  if (queue->has_more) {
    session.terminal.Note(
        fmt::format("these are the newest {}; all of them: muster list --cluster "
                    "{} --limit 0",
                    kMaxRows, Harmless(query.cluster)));
  }
  return kOk;
}

}  // namespace

int Queue(Session& session, const Words& words) {
  const auto read = client::slurm::ReadCommandWords(kOptions, words);
  if (!read.ok()) return FailUsage(session, read.status());
  const client::slurm::Settings& given = read->options;
  if (absl::Status status = CheckRefused(given, kRefused); !status.ok()) {
    return FailUsage(session, status);
  }
  QueueQuery query;
  query.limit = kMaxRows;
  query.only_active = given.Find("skip-finished") != nullptr;
  if (given.Find("all-users") == nullptr) {
    const absl::StatusOr<std::string> user = CurrentUser(session);
    if (!user.ok()) return FailOther(session, user.status());
    query.user = *user;
  }
  const auto found = FindClusters(session.client, read->operands);
  if (!found.ok()) return FailOther(session, found.status());
  // The command goes on all the same, as SkyPilot does.
  for (const std::string& name : found->missing) {
    session.terminal.Note(fmt::format("Cluster(s) not found: {}", Harmless(name)));
  }
  for (const v1::Cluster& cluster : found->clusters) {
    query.cluster = cluster.name();
    const int code = PrintQueue(session, query);
    if (code != kOk) return code;
  }
  return kOk;
}

}  // namespace muster::cli::sky
