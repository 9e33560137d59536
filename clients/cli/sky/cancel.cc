// muster sky cancel: asks that jobs of a cluster end.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "clients/cli/exit_code.h"
#include "clients/cli/report.h"
#include "clients/cli/sky/cluster_jobs.h"
#include "clients/cli/sky/verbs.h"
#include "clients/cli/slurm/given.h"
#include "clients/cli/slurm/query.h"
#include "clients/cli/text.h"
#include "contract/states.h"

namespace muster::cli::sky {
namespace {

using client::slurm::Option;
using enum Option::Argument;

constexpr size_t kMaxCanceledAtOnce = 1000;  // what one request may name
constexpr size_t kMaxJobs = 100'000;         // of -a: what a broker may have waiting
constexpr int kMaxQuestions = 3;             // who has not understood it by then is no person

constexpr std::array kCancelOptions = {
    Option{"all", 'a', kNone}, Option{"all-users", 'u', kNone}, Option{"async", 0, kNone},
    Option{"config", 0},       Option{"yes", 'y', kNone},
};
constexpr std::pair<std::string_view, std::string_view> kCancelRefused[] = {
    {"async", "leave it out: the command does not wait for the jobs' end"},
    {"config", "muster's own settings are in ~/.config/muster/config.yaml"},
};

struct AskedCancel {
  std::string cluster;  // or a pattern
  std::vector<uint64_t> ids;
  bool all = false;
  bool all_users = false;
  bool yes = false;
};

absl::StatusOr<AskedCancel> ReadCancel(const Words& words) {
  const auto read = client::slurm::ReadCommandWords(kCancelOptions, words);
  if (!read.ok()) return read.status();
  const client::slurm::Settings& given = read->options;
  if (absl::Status status = CheckRefused(given, kCancelRefused); !status.ok()) return status;
  if (read->operands.empty()) {
    return absl::InvalidArgumentError("name a cluster: muster sky cancel CLUSTER [JOB...]");
  }
  AskedCancel asked;
  asked.cluster = read->operands[0];
  asked.all = given.Find("all") != nullptr;
  asked.all_users = given.Find("all-users") != nullptr;
  asked.yes = given.Find("yes") != nullptr;
  for (size_t i = 1; i < read->operands.size(); ++i) {
    const auto id = ParseJobId(read->operands[i]);
    if (!id.ok()) return id.status();
    asked.ids.push_back(*id);
  }
  if (!asked.ids.empty() && (asked.all || asked.all_users)) {
    return absl::InvalidArgumentError("give either jobs or --all or --all-users");
  }
  if (!asked.ids.empty() && IsPattern(asked.cluster)) {
    return absl::InvalidArgumentError("with jobs, name one cluster: " + Harmless(asked.cluster) +
                                      " may be several");
  }
  return asked;
}

// The jobs that were named and can be canceled; of others it says why not.
absl::StatusOr<std::vector<uint64_t>> NamedJobs(Session& session, const std::string& cluster,
                                                const std::vector<uint64_t>& ids) {
  std::vector<uint64_t> active;
  for (const uint64_t id : ids) {
    const auto job = FindJob(session.client, cluster, id);
    if (absl::IsNotFound(job.status())) {
      session.terminal.Err(ErrorText(job.status()));
      continue;
    }
    if (!job.ok()) return job.status();
    if (contract::IsTerminal(job->state())) {
      session.terminal.Note(Summary(*job) + "; it has ended already");
    } else {
      active.push_back(id);
    }
  }
  return active;
}

absl::StatusOr<std::vector<uint64_t>> ChosenJobs(Session& session, const std::string& cluster,
                                                 const AskedCancel& asked) {
  if (!asked.ids.empty()) return NamedJobs(session, cluster, asked.ids);
  const bool is_all = asked.all || asked.all_users;
  QueueQuery query;
  query.cluster = cluster;
  query.only_active = is_all;
  query.only_running = !is_all;
  query.limit = is_all ? kMaxJobs : 1;
  if (!asked.all_users) {
    const absl::StatusOr<std::string> user = CurrentUser(session);
    if (!user.ok()) return user.status();
    query.user = *user;
  }
  const auto queue = FindQueue(session.client, query);
  if (!queue.ok()) return queue.status();
  std::vector<uint64_t> ids;
  for (const v1::Job& job : queue->jobs) ids.push_back(job.id());
  return ids;
}

// Asks as SkyPilot does; no answer is no.
bool IsWanted(Session& session, const std::string& what) {
  for (int i = 0; i < kMaxQuestions; ++i) {
    session.terminal.Err(fmt::format("{}. Proceed? [Y/n]: ", what));
    std::string answer;
    if (!std::getline(std::cin, answer)) break;
    std::transform(answer.begin(), answer.end(), answer.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    if (answer.empty() || answer == "y" || answer == "yes") return true;
    if (answer == "n" || answer == "no") break;
    session.terminal.Err("Error: answer y or n\n");
  }
  session.terminal.Err("Aborted!\n");
  return false;
}

std::string CanceledIds(const std::vector<uint64_t>& ids) {
  constexpr size_t kMaxIds = 20;  // more nobody reads
  const std::vector<uint64_t> some(ids.begin(), ids.begin() + std::min(ids.size(), kMaxIds));
  return fmt::format("{}{}", fmt::join(some, ", "), ids.size() > kMaxIds ? ", ..." : "");
}

int CancelJobs(Session& session, const std::string& cluster, const std::vector<uint64_t>& ids) {
  std::vector<uint64_t> canceled;
  std::vector<uint64_t> requested;
  for (size_t begin = 0; begin < ids.size(); begin += kMaxCanceledAtOnce) {
    v1::CancelJobsRequest request;
    const size_t end = std::min(ids.size(), begin + kMaxCanceledAtOnce);
    for (size_t i = begin; i < end; ++i) request.add_job_ids(ids[i]);
    request.set_reason("sky cancel");
    const auto response = session.client.CancelJobs(request);
    if (!response.ok()) return FailOther(session, response.status());
    for (const v1::Job& job : response->jobs()) {
      (contract::IsTerminal(job.state()) ? canceled : requested).push_back(job.id());
    }
  }
  if (!canceled.empty()) {
    session.terminal.Out(fmt::format("Cancelled job ID(s): {}\n", CanceledIds(canceled)));
  }
  if (!requested.empty()) {
    session.terminal.Out(fmt::format("Cancelling job ID(s): {}\n", CanceledIds(requested)));
    session.terminal.Note(
        fmt::format("the cluster has yet to end them; see how far it is with: "
                    "muster sky queue {}",
                    Harmless(cluster)));
  }
  return kOk;
}

int CancelOn(Session& session, const std::string& cluster, const AskedCancel& asked) {
  const auto ids = ChosenJobs(session, cluster, asked);
  if (!ids.ok()) return FailOther(session, ids.status());
  if (ids->empty()) {
    session.terminal.Out("No jobs cancelled. They may be in terminal states.\n");
    return kOk;
  }
  const bool is_latest = asked.ids.empty() && !asked.all && !asked.all_users;
  const std::string what = fmt::format("Cancelling {} {} on cluster '{}'",
                                       is_latest          ? "the latest running job,"
                                       : ids->size() == 1 ? "job"
                                                          : "jobs",
                                       CanceledIds(*ids), Harmless(cluster));
  if (!asked.yes && !IsWanted(session, what)) return kError;
  return CancelJobs(session, cluster, *ids);
}

}  // namespace

int Cancel(Session& session, const Words& words) {
  const absl::StatusOr<AskedCancel> asked = ReadCancel(words);
  if (!asked.ok()) return FailUsage(session, asked.status());
  const auto found = FindClusters(session.client, {asked->cluster});
  if (!found.ok()) return FailOther(session, found.status());
  if (found->clusters.empty()) {
    return FailUsage(session, CheckCluster(session.client, asked->cluster));
  }
  for (const v1::Cluster& cluster : found->clusters) {
    const int code = CancelOn(session, cluster.name(), *asked);
    if (code != kOk) return code;
  }
  return kOk;
}

}  // namespace muster::cli::sky
