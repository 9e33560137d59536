#include "tests/unit/clients/fake_broker.h"

#include <grpc/grpc.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "contract/slurm_reasons.h"
#include "muster/v1/clusters_service.grpc.pb.h"
#include "muster/v1/files_service.grpc.pb.h"
#include "muster/v1/jobs_service.grpc.pb.h"
#include "muster/v1/secrets_service.grpc.pb.h"
#include "rpc/status.h"

namespace muster::client {
namespace {

template <typename Hook, typename Request, typename Response>
grpc::Status Unary(const Hook& hook, const Request& request, Response* response) {
  if (!hook) return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "the test has no answer to this");
  absl::StatusOr<Response> answer = hook(request);
  if (answer.ok()) *response = *answer;
  return rpc::ToGrpc(answer.status());
}

template <typename Hook, typename Request, typename Response>
grpc::Status Streamed(const Hook& hook, const Request& request, grpc::ServerContext* context,
                      grpc::ServerWriter<Response>* writer) {
  if (!hook) return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "the test has no answer to this");
  return rpc::ToGrpc(hook(request, [&](const Response& response) {
    return !context->IsCancelled() && writer->Write(response);
  }));
}

class JobsService final : public v1::JobsService::Service {
 public:
  explicit JobsService(const FakeBroker* hooks) : hooks_(*hooks) {}

  grpc::Status SubmitJob(grpc::ServerContext*, const v1::SubmitJobRequest* in,
                         v1::SubmitJobResponse* out) override {
    const grpc::Status status = Unary(hooks_.submit_job, *in, out);
    AddWarnings(out);
    return status;
  }
  grpc::Status SubmitJobs(grpc::ServerContext*, const v1::SubmitJobsRequest* in,
                          v1::SubmitJobsResponse* out) override {
    const grpc::Status status = Unary(hooks_.submit_jobs, *in, out);
    for (v1::SubmitJobResponse& one : *out->mutable_responses()) AddWarnings(&one);
    return status;
  }
  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest* in,
                      v1::GetJobResponse* out) override {
    return Unary(hooks_.get_job, *in, out);
  }
  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest* in,
                        v1::ListJobsResponse* out) override {
    return Unary(hooks_.list_jobs, *in, out);
  }
  grpc::Status CancelJobs(grpc::ServerContext*, const v1::CancelJobsRequest* in,
                          v1::CancelJobsResponse* out) override {
    return Unary(hooks_.cancel_jobs, *in, out);
  }
  grpc::Status CountJobs(grpc::ServerContext*, const v1::CountJobsRequest* in,
                         v1::CountJobsResponse* out) override {
    return Unary(hooks_.count_jobs, *in, out);
  }
  grpc::Status ListTransitions(grpc::ServerContext*, const v1::ListTransitionsRequest* in,
                               v1::ListTransitionsResponse* out) override {
    return Unary(hooks_.list_transitions, *in, out);
  }
  grpc::Status UpdateJob(grpc::ServerContext*, const v1::UpdateJobRequest* in,
                         v1::UpdateJobResponse* out) override {
    return Unary(hooks_.update_job, *in, out);
  }
  grpc::Status RerunJobs(grpc::ServerContext*, const v1::RerunJobsRequest* in,
                         v1::RerunJobsResponse* out) override {
    return Unary(hooks_.rerun_jobs, *in, out);
  }
  grpc::Status SignalJobs(grpc::ServerContext*, const v1::SignalJobsRequest* in,
                          v1::SignalJobsResponse* out) override {
    return Unary(hooks_.signal_jobs, *in, out);
  }
  grpc::Status MoveJobs(grpc::ServerContext*, const v1::MoveJobsRequest* in,
                        v1::MoveJobsResponse* out) override {
    return Unary(hooks_.move_jobs, *in, out);
  }
  grpc::Status HoldJobs(grpc::ServerContext*, const v1::HoldJobsRequest* in,
                        v1::HoldJobsResponse* out) override {
    return Unary(hooks_.hold_jobs, *in, out);
  }
  grpc::Status ReleaseJobs(grpc::ServerContext*, const v1::ReleaseJobsRequest* in,
                           v1::ReleaseJobsResponse* out) override {
    return Unary(hooks_.release_jobs, *in, out);
  }
  grpc::Status PlanJob(grpc::ServerContext*, const v1::PlanJobRequest* in,
                       v1::PlanJobResponse* out) override {
    return Unary(hooks_.plan_job, *in, out);
  }
  grpc::Status WatchJobs(grpc::ServerContext* context, const v1::WatchJobsRequest* in,
                         grpc::ServerWriter<v1::WatchJobsResponse>* writer) override {
    return Streamed(hooks_.watch_jobs, *in, context, writer);
  }
  grpc::Status ReadLog(grpc::ServerContext* context, const v1::ReadLogRequest* in,
                       grpc::ServerWriter<v1::ReadLogResponse>* writer) override {
    return Streamed(hooks_.read_log, *in, context, writer);
  }

 private:
  void AddWarnings(v1::SubmitJobResponse* response) const {
    for (const v1::SubmitWarning& warning : hooks_.submit_warnings)
      *response->add_warnings() = warning;
  }

  const FakeBroker& hooks_;
};

class ClustersService final : public v1::ClustersService::Service {
 public:
  explicit ClustersService(const FakeBroker* hooks) : hooks_(*hooks) {}

  grpc::Status ListClusters(grpc::ServerContext*, const v1::ListClustersRequest* in,
                            v1::ListClustersResponse* out) override {
    return Unary(hooks_.list_clusters, *in, out);
  }
  grpc::Status GetCluster(grpc::ServerContext*, const v1::GetClusterRequest* in,
                          v1::GetClusterResponse* out) override {
    return Unary(hooks_.get_cluster, *in, out);
  }
  grpc::Status CordonCluster(grpc::ServerContext*, const v1::CordonClusterRequest* in,
                             v1::CordonClusterResponse* out) override {
    return Unary(hooks_.cordon_cluster, *in, out);
  }

  grpc::Status UncordonCluster(grpc::ServerContext*, const v1::UncordonClusterRequest* in,
                               v1::UncordonClusterResponse* out) override {
    return Unary(hooks_.uncordon_cluster, *in, out);
  }

  grpc::Status ForgetCluster(grpc::ServerContext*, const v1::ForgetClusterRequest* in,
                             v1::ForgetClusterResponse* out) override {
    return Unary(hooks_.forget_cluster, *in, out);
  }
  grpc::Status CheckCluster(grpc::ServerContext*, const v1::CheckClusterRequest* in,
                            v1::CheckClusterResponse* out) override {
    return Unary(hooks_.check_cluster, *in, out);
  }
  grpc::Status DescribeCluster(grpc::ServerContext*, const v1::DescribeClusterRequest* in,
                               v1::DescribeClusterResponse* out) override {
    return Unary(hooks_.describe_cluster, *in, out);
  }

 private:
  const FakeBroker& hooks_;
};

class FilesService final : public v1::FilesService::Service {
 public:
  explicit FilesService(const FakeBroker* hooks) : hooks_(*hooks) {}

  grpc::Status FindMissingFiles(grpc::ServerContext*, const v1::FindMissingFilesRequest* in,
                                v1::FindMissingFilesResponse* out) override {
    return Unary(hooks_.find_missing_files, *in, out);
  }
  grpc::Status UploadFiles(grpc::ServerContext*, grpc::ServerReader<v1::UploadFilesRequest>* reader,
                           v1::UploadFilesResponse* out) override {
    const auto hook = [&](const auto&) {
      return hooks_.upload_files(
          [reader](v1::UploadFilesRequest* request) { return reader->Read(request); });
    };
    return Unary(std::function<absl::StatusOr<v1::UploadFilesResponse>(int)>(hook), 0, out);
  }
  grpc::Status FetchFiles(grpc::ServerContext* context, const v1::FetchFilesRequest* in,
                          grpc::ServerWriter<v1::FetchFilesResponse>* writer) override {
    return Streamed(hooks_.fetch_files, *in, context, writer);
  }

 private:
  const FakeBroker& hooks_;
};

class SecretsService final : public v1::SecretsService::Service {
 public:
  explicit SecretsService(const FakeBroker* hooks) : hooks_(*hooks) {}

  grpc::Status SetSecret(grpc::ServerContext*, const v1::SetSecretRequest* in,
                         v1::SetSecretResponse* out) override {
    return Unary(hooks_.set_secret, *in, out);
  }
  grpc::Status DeleteSecret(grpc::ServerContext*, const v1::DeleteSecretRequest* in,
                            v1::DeleteSecretResponse* out) override {
    return Unary(hooks_.delete_secret, *in, out);
  }

 private:
  const FakeBroker& hooks_;
};

}  // namespace

class FakeBroker::Impl {
 public:
  explicit Impl(const FakeBroker* hooks)
      : jobs_(hooks), clusters_(hooks), files_(hooks), secrets_(hooks) {
    // gRPC is held to the end of the process: when its last user goes, one of its threads may take
    // ten seconds to notice.
    static const bool kept = (grpc_init(), true);
    EXPECT_TRUE(kept);
    std::string pattern = ::testing::TempDir() + "brokerXXXXXX";
    directory_ = mkdtemp(pattern.data());
  }
  ~Impl() {
    Stop();
    std::filesystem::remove_all(directory_);
  }

  std::string address() const { return "unix:" + directory_ + "/broker.sock"; }

  void Start() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address(), grpc::InsecureServerCredentials());
    builder.RegisterService(&jobs_);
    builder.RegisterService(&clusters_);
    builder.RegisterService(&files_);
    builder.RegisterService(&secrets_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr) << address();
  }

  void Stop() {
    if (!server_) return;
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    server_.reset();
  }

 private:
  std::string directory_;
  JobsService jobs_;
  ClustersService clusters_;
  FilesService files_;
  SecretsService secrets_;
  std::unique_ptr<grpc::Server> server_;
};

FakeBroker::FakeBroker() : impl_(std::make_unique<Impl>(this)) { Start(); }
FakeBroker::~FakeBroker() = default;

std::string FakeBroker::address() const { return impl_->address(); }
void FakeBroker::Stop() { impl_->Stop(); }
void FakeBroker::Start() { impl_->Start(); }

v1::StateReason Because(const std::string& sentence, v1::StateReasonCode code) {
  v1::StateReason reason;
  reason.set_code(code);
  reason.set_message(sentence);
  return reason;
}

v1::StateReason SlurmSays(const std::string& word) { return contract::SlurmReason(word); }

v1::Job JobInState(uint64_t id, v1::JobState state) {
  v1::Job job;
  job.set_id(id);
  job.set_state(state);
  job.set_name("train");
  job.set_project("default");
  job.set_user("ada");
  job.set_cluster("box");
  job.set_job_sequence(3);
  job.mutable_create_time()->set_seconds(1'772'366'400);
  v1::Run* run = job.add_runs();
  run->set_number(1);
  run->set_cluster("box");
  return job;
}

v1::WatchJobsResponse Step(uint64_t job, uint64_t sequence, v1::JobState state, uint32_t run) {
  v1::WatchJobsResponse response;
  v1::JobChange& change = *response.add_changes();
  change.set_sequence(sequence);
  change.mutable_transition()->set_sequence(sequence);
  change.mutable_transition()->set_job_sequence(sequence);
  change.mutable_transition()->set_job_state(state);
  change.mutable_transition()->set_run(run);
  change.mutable_transition()->mutable_time()->set_seconds(1'772'366'400);
  change.mutable_transition()->mutable_evidence()->set_source(v1::EVIDENCE_SOURCE_PROCESS);
  *change.mutable_job() = JobInState(job, state);
  return response;
}

v1::WatchJobsResponse Heartbeat(uint64_t sequence) {
  v1::WatchJobsResponse response;
  response.mutable_heartbeat()->set_sequence(sequence);
  return response;
}

v1::ReadLogResponse Piece(uint64_t offset, const std::string& data, v1::LogEnd end,
                          v1::LogStream stream) {
  v1::ReadLogResponse piece;
  piece.set_stream(stream);
  piece.set_offset(offset);
  piece.set_data(data);
  piece.set_end(end);
  return piece;
}

}  // namespace muster::client
