// Passes files of runs from the remote broker to this one. Both use the same pieces.
#include <memory>
#include <utility>

#include "agents/muster/connection.h"
#include "agents/muster/remote.h"
#include "contract/errors.h"

namespace muster::remote {
namespace {

absl::StatusOr<uint64_t> JobOf(Connection& connection, const std::string& cluster,
                               const std::string& run_key) {
  const absl::StatusOr<std::optional<v1::Job>> job = connection.FindRun(cluster, run_key);
  if (!job.ok()) return job.status();
  if (job->has_value()) return (*job)->id();
  return contract::Error(absl::StatusCode::kFailedPrecondition, "RUN_HAS_NO_FILES",
                         "the remote broker has no job of the run any more");
}

absl::Status Relay(Connection& connection, const std::string& cluster, const agents::RankOfRun& of,
                   const std::string& path, const agents::SendPiece& send) {
  const absl::StatusOr<uint64_t> job = JobOf(connection, cluster, of.run_key);
  if (!job.ok()) return job.status();
  v1::FetchFilesRequest request;
  request.set_job_id(*job);
  request.set_rank(of.rank);
  request.set_path(path);
  const std::unique_ptr<client::FileReader> reader =
      connection.For("FetchFiles").FetchFiles(request);
  while (true) {
    absl::StatusOr<std::optional<v1::FetchFilesResponse>> piece = reader->Next();
    if (!piece.ok()) return piece.status();
    if (!piece->has_value() || !send(*std::move(*piece))) return absl::OkStatus();
  }
}

}  // namespace

agents::RelayRunFiles RelayFilesOf(const RemoteConfig& config) {
  return [config](const agents::RankOfRun& of, const std::string& path,
                  const agents::SendPiece& send) -> absl::Status {
    // Each copy has a connection of its own, so that it does not delay the looks at runs.
    const absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Open(config);
    if (!connection.ok()) return connection.status();
    return Relay(**connection, config.cluster, of, path, send);
  };
}

}  // namespace muster::remote
