// Plays a broker that answers as a test tells it to, over real gRPC on a Unix socket.
#ifndef MUSTER_TESTS_UNIT_CLIENTS_FAKE_BROKER_H_
#define MUSTER_TESTS_UNIT_CLIENTS_FAKE_BROKER_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/clusters_service.pb.h"
#include "muster/v1/files_service.pb.h"
#include "muster/v1/jobs_service.pb.h"
#include "muster/v1/secrets_service.pb.h"

namespace muster::client {

// The hooks are called from gRPC's threads; set them before the first call. A hook that is not set
// answers UNIMPLEMENTED.
class FakeBroker {
 public:
  template <typename Request, typename Response>
  using Answer = std::function<absl::StatusOr<Response>(const Request&)>;
  // Writes to the stream as long as `write` returns true; the status ends it.
  template <typename Request, typename Response>
  using Stream = std::function<absl::Status(const Request&,
                                            const std::function<bool(const Response&)>& write)>;

  Answer<v1::SubmitJobRequest, v1::SubmitJobResponse> submit_job;
  Answer<v1::SubmitJobsRequest, v1::SubmitJobsResponse> submit_jobs;
  // These go with the answers of the two calls.
  std::vector<v1::SubmitWarning> submit_warnings;
  Answer<v1::GetJobRequest, v1::GetJobResponse> get_job;
  Answer<v1::ListJobsRequest, v1::ListJobsResponse> list_jobs;
  Answer<v1::CountJobsRequest, v1::CountJobsResponse> count_jobs;
  Answer<v1::ListTransitionsRequest, v1::ListTransitionsResponse> list_transitions;
  Answer<v1::UpdateJobRequest, v1::UpdateJobResponse> update_job;
  Answer<v1::RerunJobsRequest, v1::RerunJobsResponse> rerun_jobs;
  Answer<v1::CancelJobsRequest, v1::CancelJobsResponse> cancel_jobs;
  Answer<v1::SignalJobsRequest, v1::SignalJobsResponse> signal_jobs;
  Answer<v1::HoldJobsRequest, v1::HoldJobsResponse> hold_jobs;
  Answer<v1::MoveJobsRequest, v1::MoveJobsResponse> move_jobs;
  Answer<v1::ReleaseJobsRequest, v1::ReleaseJobsResponse> release_jobs;
  Answer<v1::PlanJobRequest, v1::PlanJobResponse> plan_job;
  Answer<v1::ListClustersRequest, v1::ListClustersResponse> list_clusters;
  Answer<v1::GetClusterRequest, v1::GetClusterResponse> get_cluster;
  Answer<v1::ForgetClusterRequest, v1::ForgetClusterResponse> forget_cluster;
  Answer<v1::CordonClusterRequest, v1::CordonClusterResponse> cordon_cluster;
  Answer<v1::UncordonClusterRequest, v1::UncordonClusterResponse> uncordon_cluster;
  Answer<v1::CheckClusterRequest, v1::CheckClusterResponse> check_cluster;
  Answer<v1::DescribeClusterRequest, v1::DescribeClusterResponse> describe_cluster;
  Stream<v1::WatchJobsRequest, v1::WatchJobsResponse> watch_jobs;
  Stream<v1::ReadLogRequest, v1::ReadLogResponse> read_log;
  Answer<v1::FindMissingFilesRequest, v1::FindMissingFilesResponse> find_missing_files;
  // `read` is false after the last message, and when the client has gone.
  std::function<absl::StatusOr<v1::UploadFilesResponse>(
      const std::function<bool(v1::UploadFilesRequest*)>& read)>
      upload_files;
  Stream<v1::FetchFilesRequest, v1::FetchFilesResponse> fetch_files;
  Answer<v1::SetSecretRequest, v1::SetSecretResponse> set_secret;
  Answer<v1::DeleteSecretRequest, v1::DeleteSecretResponse> delete_secret;

  FakeBroker();
  ~FakeBroker();

  // Returns "unix:PATH" in a directory of its own.
  std::string address() const;
  // Ends it with all its streams, and starts it again on the same socket.
  void Stop();
  void Start();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// A job as GetJob has it, with one run on cluster "box".
v1::Job JobInState(uint64_t id, v1::JobState state);
// Makes a reason with this sentence.
v1::StateReason Because(const std::string& sentence,
                        v1::StateReasonCode code = v1::STATE_REASON_CODE_OTHER);
// Returns the reason in Slurm's words: "Resources".
v1::StateReason SlurmSays(const std::string& word);
// Returns the next change of a job, a transition.
v1::WatchJobsResponse Step(uint64_t job, uint64_t sequence, v1::JobState state, uint32_t run = 1);
v1::WatchJobsResponse Heartbeat(uint64_t sequence = 0);
v1::ReadLogResponse Piece(uint64_t offset, const std::string& data,
                          v1::LogEnd end = v1::LOG_END_UNSPECIFIED,
                          v1::LogStream stream = v1::LOG_STREAM_STDOUT);

}  // namespace muster::client

#endif  // MUSTER_TESTS_UNIT_CLIENTS_FAKE_BROKER_H_
