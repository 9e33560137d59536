#include "broker/app/fetch_files.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "broker/app/ask_cluster.h"
#include "broker/app/fetches.h"
#include "broker/app/rights.h"
#include "broker/app/run_logs.h"
#include "broker/engine/engine.h"
#include "broker/store/store.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/file_tree.h"
#include "contract/roles.h"

namespace muster::broker {
namespace {

absl::Status NotFound(std::string_view reason, std::string_view message) {
  return contract::Error(absl::StatusCode::kNotFound, reason, message);
}

bool NamesResults(const v1::FetchFilesRequest& request, const v1::Run& run) {
  const std::string_view path = request.path();
  return !run.results_directory().empty() &&
         path.substr(0, path.find('/')) == contract::kResultsName;
}

absl::Status SendsNone(const v1::Cluster& cluster, const v1::Run& run) {
  std::string why = "its agent sends no files; install the broker's version of it";
  if (cluster.kind() == v1::CLUSTER_KIND_KUBERNETES) {
    why = run.results_directory().empty()
              ? "a pod's files go with the pod. Let the command write what is to stay to a volume "
                "(kubernetes.volumes) or below results_directory, and read it there"
              : fmt::format(
                    "a pod's files go with the pod, and its agent does not see the volume "
                    "with the results, {} in its containers (kubernetes.agent_roots). Mount "
                    "that volume, and read them there",
                    contract::Quoted(run.results_directory()));
  }
  return contract::Error(absl::StatusCode::kFailedPrecondition, "CLUSTER_SENDS_NO_FILES",
                         fmt::format("cluster \"{}\": {}", cluster.name(), why),
                         {{"cluster", cluster.name()}});
}

// Returns the run that the request names, which exists; 0 stands for the latest.
const v1::Run& RunOf(const v1::Job& job, const v1::FetchFilesRequest& request) {
  const int number = request.run() == 0 ? job.runs_size() : static_cast<int>(request.run());
  return job.runs(number - 1);
}

absl::Status CheckHasFiles(const v1::Job& job, const v1::FetchFilesRequest& request) {
  const auto runs = static_cast<uint32_t>(job.runs_size());
  if (request.run() > runs) return NoSuchRun(job.id(), request.run(), runs);
  if (runs == 0) return NotFound("NO_SUCH_RUN", fmt::format("job {} has had no run yet", job.id()));
  if (const uint32_t ranks = contract::RankCount(job.spec()); request.rank() >= ranks) {
    return NoSuchRank(job.id(), request.rank(), ranks);
  }
  const v1::Run& run = RunOf(job, request);
  const std::string& directory = job.spec().working_directory();
  if (directory.empty() || NamesResults(request, run)) return absl::OkStatus();
  const std::string results =
      run.results_directory().empty()
          ? ""
          : fmt::format("; its results are there as {}:{}", job.id(), contract::kResultsName);
  return contract::Error(
      absl::StatusCode::kFailedPrecondition, "RUN_HAS_NO_FILES",
      fmt::format("job {} works in {}, a directory of the cluster, and has none of its own; "
                  "copy from there{}",
                  job.id(), contract::Quoted(directory), results));
}

agent::v1::AgentQuestion QuestionFor(const v1::Run& run, const v1::FetchFilesRequest& request,
                                     const std::string& ticket) {
  agent::v1::AgentQuestion question;
  agent::v1::SendFilesQuestion& send = *question.mutable_send_files();
  send.set_ticket(ticket);
  send.set_run_key(run.run_key());
  send.set_rank(request.rank());
  send.set_path(request.path());
  send.set_results_directory(run.results_directory());
  if (const auto rank = static_cast<int>(request.rank()); rank < run.nodes_size()) {
    send.set_node(run.nodes(rank));
  }
  return question;
}

}  // namespace

absl::Status CheckFetch(const Principal& principal, const v1::FetchFilesRequest& request) {
  if (auto scope = Authorize(principal, UseCase::kReadFiles); !scope.ok()) return scope.status();
  if (request.job_id() == 0) return contract::BadField("job_id", "is missing; give a job's number");
  const std::string_view wrong =
      request.path().empty() ? "" : contract::WhatIsWrongWithTreePath(request.path());
  if (wrong.empty()) return absl::OkStatus();
  return contract::BadField("path",
                            fmt::format("{} {}; use a path relative to the run's working directory",
                                        contract::Quoted(request.path()), wrong));
}

void AskForFiles(const Principal& principal, const Services& services,
                 const v1::FetchFilesRequest& request, const std::string& ticket,
                 std::function<void(absl::Status)> done) {
  const absl::StatusOr<store::Scope> scope = Authorize(principal, UseCase::kReadFiles);
  if (!scope.ok()) return done(scope.status());
  const absl::StatusOr<v1::Job> job = services.store->GetJob(*scope, request.job_id());
  if (!job.ok()) return done(job.status());
  if (absl::Status status = CheckHasFiles(*job, request); !status.ok()) return done(status);
  const v1::Run& run = RunOf(*job, request);
  const std::optional<v1::Cluster> cluster =
      core::Find(run.cluster(), *services.engine->clusters());
  if (!cluster) return done(NoSuchCluster(run.cluster()));
  if (!cluster->inventory().sends_files()) return done(SendsNone(*cluster, run));
  AskCluster(services, run.cluster(), QuestionFor(run, request, ticket),
             services.fetch_begin_patience, absl::InfiniteFuture(),
             [done = std::move(done)](const absl::StatusOr<ClusterAnswer>& answer) {
               done(answer.ok() ? absl::OkStatus() : AgentFailed(answer.status()));
             });
}

}  // namespace muster::broker
