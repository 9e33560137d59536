#include "clients/cli/slurm/dependency.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "contract/errors.h"
#include "contract/parts.h"
#include "contract/states.h"

namespace muster::cli {
namespace {

absl::Status Bad(uint64_t id, std::string_view problem) {
  return absl::FailedPreconditionError(fmt::format("--dependency: job {} {}", id, problem));
}

absl::StatusOr<v1::Job> GetJob(client::Client& client, uint64_t id) {
  v1::GetJobRequest request;
  request.set_job_id(id);
  auto response = client.GetJob(request);
  if (!response.ok()) return response.status();
  return std::move(*response->mutable_job());
}

bool HasNumber(const v1::Job& job) {
  return !job.runs().empty() && !job.runs().rbegin()->external_id().empty();
}

// The job once its latest run has a number of the cluster's.
absl::StatusOr<v1::Job> AwaitNumber(client::Client& client, uint64_t id) {
  absl::StatusOr<v1::Job> job = GetJob(client, id);
  if (!job.ok() || HasNumber(*job)) return job;
  v1::WatchJobsRequest request;
  request.add_job_ids(id);
  request.set_until_terminal(true);
  const auto steps = client.WatchJobs(request, absl::Now() + kMaxNumberWait);
  while (true) {
    const auto step = steps->Next();
    job = GetJob(client, id);
    if (!job.ok() || HasNumber(*job)) return job;
    if (!step.ok() || !step->has_value() || contract::IsTerminal(job->state())) {
      return Bad(id,
                 "has no number of Slurm's yet, so that Slurm cannot wait for it; submit this "
                 "one when it is PENDING on its cluster");
    }
  }
}

class Translator {
 public:
  Translator(client::Client* client, v1::JobSpec* spec) : client_(*client), spec_(*spec) {}

  // "afterok:42:43+5" with Slurm's numbers.
  absl::StatusOr<std::string> Clause(std::string_view clause) {
    std::string translated;
    for (std::string_view part : contract::Split(clause, ':')) {
      const std::string_view number = part.substr(0, part.find_first_of("+_"));
      const auto id = contract::ParseNumber<uint64_t>(number);
      if (id.has_value()) {
        const absl::StatusOr<std::string> known = Number(*id);
        if (!known.ok()) return known.status();
        translated += fmt::format(":{}{}", *known, part.substr(number.size()));
      } else {
        translated += fmt::format("{}{}", translated.empty() ? "" : ":", part);
      }
    }
    return translated;
  }

 private:
  absl::StatusOr<std::string> Number(uint64_t id) {
    const absl::StatusOr<v1::Job> job = AwaitNumber(client_, id);
    if (!job.ok()) return job.status();
    const v1::Run& run = *job->runs().rbegin();
    v1::GetClusterRequest request;
    request.set_name(run.cluster());
    const auto cluster = client_.GetCluster(request);
    if (!cluster.ok()) return cluster.status();
    if (cluster->cluster().kind() != v1::CLUSTER_KIND_SLURM) {
      return Bad(id, fmt::format("is on {}, which is no Slurm cluster", run.cluster()));
    }
    auto& named = *spec_.mutable_placement()->mutable_clusters();
    const bool is_first = std::exchange(is_first_, false);
    const bool fits =
        named.empty() || std::find(named.begin(), named.end(), run.cluster()) != named.end();
    if (!fits)
      return Bad(id, fmt::format("is on cluster {}, and this one is for {}", run.cluster(),
                                 fmt::join(named, ",")));
    if (is_first) named.Clear();
    if (is_first) named.Add(std::string(run.cluster()));
    return run.external_id();
  }

  client::Client& client_;
  v1::JobSpec& spec_;
  bool is_first_ = true;
};

}  // namespace

absl::Status TranslateDependency(client::Client& client, v1::JobSpec* spec) {
  if (spec->slurm().dependency().empty()) return absl::OkStatus();
  const std::string written = spec->slurm().dependency();
  Translator translator(&client, spec);
  std::string translated;
  for (std::string_view clause : contract::Split(written, ',')) {
    const absl::StatusOr<std::string> one = translator.Clause(clause);
    if (!one.ok()) return one.status();
    translated += fmt::format("{}{}", translated.empty() ? "" : ",", *one);
  }
  spec->mutable_slurm()->set_dependency(translated);
  return absl::OkStatus();
}

}  // namespace muster::cli
