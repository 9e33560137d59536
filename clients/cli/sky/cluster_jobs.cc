#include "clients/cli/sky/cluster_jobs.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <map>
#include <utility>

#include "clients/cli/filter.h"
#include "clients/cli/known_clusters.h"
#include "clients/cli/slurm/query.h"
#include "clients/cli/text.h"
#include "contract/characters.h"
#include "contract/parts.h"

namespace muster::cli::sky {
namespace {

constexpr int kQueuePageSize = 1000;  // as many as the broker gives at once

std::string FilterOfQueue(const QueueQuery& query) {
  std::string filter = fmt::format("(cluster = {} OR cluster = \"\")", FilterText(query.cluster));
  if (query.only_active) {
    filter += " AND (state = QUEUED OR state = PENDING OR state = RUNNING OR state = SUSPENDED)";
  }
  if (query.only_running) filter += " AND (state = RUNNING OR state = SUSPENDED)";
  return filter;
}

// A job that may go to several clusters is in no queue yet.
bool IsIn(const v1::Job& job, std::string_view cluster) {
  if (!job.cluster().empty()) return job.cluster() == cluster;
  const auto& named = job.spec().placement().clusters();
  return named.size() == 1 && named[0] == cluster;
}

}  // namespace

bool IsPattern(std::string_view name) { return name.find_first_of("*?[") != name.npos; }

absl::StatusOr<FoundClusters> FindClusters(client::Client& client,
                                           const std::vector<std::string>& patterns) {
  auto all = AllClusters(client);
  if (!all.ok()) return all.status();
  FoundClusters found;
  const auto fits = [](const std::string& pattern, const std::string& name) {
    return pattern == name || fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  };
  for (const std::string& pattern : patterns) {
    const bool is_there = std::any_of(all->begin(), all->end(), [&](const auto& cluster) {
      return fits(pattern, cluster.first);
    });
    if (!is_there) found.missing.push_back(pattern);
  }
  for (auto& entry : *all) {
    const bool is_asked = patterns.empty() || std::any_of(patterns.begin(), patterns.end(),
                                                          [&](const std::string& pattern) {
                                                            return fits(pattern, entry.first);
                                                          });
    if (is_asked) found.clusters.push_back(std::move(entry.second));
  }
  return found;
}

absl::Status CheckCluster(client::Client& client, const std::string& name) {
  v1::GetClusterRequest request;
  request.set_name(name);
  const auto response = client.GetCluster(request);
  if (!absl::IsNotFound(response.status())) return response.status();
  return absl::NotFoundError(
      fmt::format("Cluster {} not found; there are: muster sky status", contract::Quoted(name)));
}

absl::StatusOr<QueuedJobs> FindQueue(client::Client& client, const QueueQuery& query) {
  QueuedJobs found;
  v1::ListJobsRequest request;
  request.set_filter(FilterOfQueue(query));
  request.set_include_spec(true);
  request.set_page_size(kQueuePageSize);
  do {
    const auto page = client.ListJobs(request);
    if (!page.ok()) return page.status();
    for (const v1::Job& job : page->jobs()) {
      if (!IsIn(job, query.cluster) || (query.user && job.user() != *query.user)) continue;
      if (found.jobs.size() == query.limit) {
        found.has_more = true;
        return found;
      }
      found.jobs.push_back(job);
    }
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return found;
}

absl::StatusOr<uint64_t> ParseJobId(std::string_view word) {
  const auto id = contract::ParseNumber<uint64_t>(word);
  if (id.has_value() && *id > 0) return *id;
  return absl::InvalidArgumentError(
      fmt::format("{} is not a job; write its number, e.g. 42", contract::Quoted(word)));
}

absl::StatusOr<v1::Job> FindJob(client::Client& client, const std::string& cluster, uint64_t id) {
  v1::GetJobRequest request;
  request.set_job_id(id);
  auto response = client.GetJob(request);
  if (absl::IsNotFound(response.status())) {
    return absl::NotFoundError(
        fmt::format("Job {} not found; there are: muster sky queue {}", id, Harmless(cluster)));
  }
  if (!response.ok()) return response.status();
  if (IsIn(response->job(), cluster)) return std::move(*response->mutable_job());
  const std::string& other = response->job().cluster();
  return absl::NotFoundError(fmt::format(
      "Job {} not found on cluster {}; it is {}", id, contract::Quoted(cluster),
      other.empty() ? std::string("not on any cluster yet") : "on " + contract::Quoted(other)));
}

}  // namespace muster::cli::sky
