#include "clients/cpp/client.h"

#include <fmt/format.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "clients/cpp/bearer.h"
#include "clients/cpp/errors.h"
#include "clients/cpp/file_streams.h"
#include "clients/cpp/readers.h"
#include "clients/cpp/renewal.h"
#include "contract/text.h"
#include "muster/v1/audit_service.grpc.pb.h"
#include "muster/v1/clusters_service.grpc.pb.h"
#include "muster/v1/files_service.grpc.pb.h"
#include "muster/v1/identity_service.grpc.pb.h"
#include "muster/v1/jobs_service.grpc.pb.h"
#include "muster/v1/projects_service.grpc.pb.h"
#include "muster/v1/secrets_service.grpc.pb.h"
#include "muster/v1/usage_service.grpc.pb.h"
#include "pki/certificates.h"
#include "rpc/address.h"
#include "rpc/backoff.h"

namespace muster::client {
namespace {

// Two attempts of a unary call are at most this far apart: somebody waits for its answer, unlike a
// stream's.
constexpr absl::Duration kMaxCallBackoff = absl::Seconds(1);

std::shared_ptr<grpc::Channel> MakeChannel(const rpc::Address& address) {
  grpc::ChannelArguments arguments;
  // Repeats are ours, and nothing is configured through DNS or a proxy: looking for that only costs
  // time.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A broker that restarts is found again soon.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  // A follower may hear nothing for hours; a peer that vanished without a word is noticed all the
  // same. The broker allows a ping each 15 s.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  if (!address.is_tls) {
    return grpc::CreateCustomChannel(address.target, grpc::InsecureChannelCredentials(), arguments);
  }
  grpc::SslCredentialsOptions trust;
  trust.pem_root_certs = address.ca;
  return grpc::CreateCustomChannel(address.target, grpc::SslCredentials(trust), arguments);
}

bool StaysOnThisMachine(const rpc::Address& address) {
  return !address.unix_path.empty() || address.target.starts_with("ipv4:127.") ||
         address.target.starts_with("ipv6:[::1]:") ||
         address.target.starts_with("dns:///localhost:");
}

// An empty CA would mean all CAs of the system.
absl::Status CheckCa(const rpc::Address& address) {
  if (address.ca.empty()) {
    return absl::InvalidArgumentError(fmt::format(
        "broker address \"{}\": it needs the CA by which you know the broker: --ca-file PATH, "
        "MUSTER_CA_FILE or a context; muster token create --bundle on the broker's host makes all "
        "that muster context import takes",
        address.text));
  }
  const absl::Status status = pki::SplitCertificates(address.ca).status();
  if (status.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("broker address \"{}\": the CA's file has no whole certificate: {}; it has "
                  "-----BEGIN CERTIFICATE-----",
                  address.text, ToStd(status.message())));
}

template <typename Message>
absl::Status CheckSize(const Message& request) {
  const size_t bytes = request.ByteSizeLong();
  if (bytes <= kMaxRequestBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("the request has {} bytes and the broker takes {}: submit fewer jobs at a time, "
                  "or keep large scripts and data in files on the cluster",
                  bytes, kMaxRequestBytes));
}

class GrpcClient final : public Client {
 public:
  GrpcClient(ClientOptions options, rpc::Address address)
      : options_(std::move(options)),
        address_(std::move(address)),
        channel_(MakeChannel(address_)),
        jobs_(v1::JobsService::NewStub(channel_)),
        clusters_(v1::ClustersService::NewStub(channel_)),
        files_(v1::FilesService::NewStub(channel_)),
        identity_(v1::IdentityService::NewStub(channel_)),
        secrets_(v1::SecretsService::NewStub(channel_)),
        projects_(v1::ProjectsService::NewStub(channel_)),
        audit_(v1::AuditService::NewStub(channel_)),
        usage_(v1::UsageService::NewStub(channel_)) {}

  absl::StatusOr<v1::SubmitJobResponse> SubmitJob(const v1::SubmitJobRequest& request) override {
    return Call(*jobs_, &v1::JobsService::Stub::SubmitJob, request, MayRepeat(request));
  }
  absl::StatusOr<v1::SubmitJobsResponse> SubmitJobs(const v1::SubmitJobsRequest& request) override {
    const bool repeatable =
        std::all_of(request.requests().begin(), request.requests().end(), MayRepeat);
    return Call(*jobs_, &v1::JobsService::Stub::SubmitJobs, request, repeatable);
  }
  absl::StatusOr<v1::GetJobResponse> GetJob(const v1::GetJobRequest& request) override {
    return Call(*jobs_, &v1::JobsService::Stub::GetJob, request, true);
  }
  absl::StatusOr<v1::ListJobsResponse> ListJobs(const v1::ListJobsRequest& request) override {
    return Call(*jobs_, &v1::JobsService::Stub::ListJobs, request, true);
  }
  absl::Status ReadJobs(const v1::ListJobsRequest& request, v1::ListJobsResponse* page) override {
    return CallInto(*jobs_, &v1::JobsService::Stub::ListJobs, request, true, options_.call_timeout,
                    page);
  }
  absl::StatusOr<v1::CountJobsResponse> CountJobs(const v1::CountJobsRequest& request) override {
    return Call(*jobs_, &v1::JobsService::Stub::CountJobs, request, true);
  }
  absl::StatusOr<v1::ListTransitionsResponse> ListTransitions(
      const v1::ListTransitionsRequest& request) override {
    return Call(*jobs_, &v1::JobsService::Stub::ListTransitions, request, true);
  }
  absl::StatusOr<v1::UpdateJobResponse> UpdateJob(const v1::UpdateJobRequest& request) override {
    return Call(*jobs_, &v1::JobsService::Stub::UpdateJob, request, true);
  }
  absl::StatusOr<v1::RerunJobsResponse> RerunJobs(const v1::RerunJobsRequest& request) override {
    const bool repeatable = !request.request_id().empty() || request.validate_only();
    return Call(*jobs_, &v1::JobsService::Stub::RerunJobs, request, repeatable);
  }
  absl::StatusOr<v1::SignalJobsResponse> SignalJobs(const v1::SignalJobsRequest& request) override {
    return Call(*jobs_, &v1::JobsService::Stub::SignalJobs, request, false);
  }
  absl::StatusOr<v1::ListLogsResponse> ListLogs(const v1::ListLogsRequest& request) override {
    return Call(*jobs_, &v1::JobsService::Stub::ListLogs, request, true);
  }
  absl::StatusOr<v1::CancelJobsResponse> CancelJobs(const v1::CancelJobsRequest& request) override {
    return Call(*jobs_, &v1::JobsService::Stub::CancelJobs, request, true);
  }
  absl::StatusOr<v1::HoldJobsResponse> HoldJobs(const v1::HoldJobsRequest& request) override {
    return Call(*jobs_, &v1::JobsService::Stub::HoldJobs, request, true);
  }
  absl::StatusOr<v1::MoveJobsResponse> MoveJobs(const v1::MoveJobsRequest& request) override {
    return Call(*jobs_, &v1::JobsService::Stub::MoveJobs, request, true);
  }
  absl::StatusOr<v1::ReleaseJobsResponse> ReleaseJobs(
      const v1::ReleaseJobsRequest& request) override {
    return Call(*jobs_, &v1::JobsService::Stub::ReleaseJobs, request, true);
  }
  absl::StatusOr<v1::ListClustersResponse> ListClusters(
      const v1::ListClustersRequest& request) override {
    return Call(*clusters_, &v1::ClustersService::Stub::ListClusters, request, true);
  }
  absl::StatusOr<v1::GetClusterResponse> GetCluster(const v1::GetClusterRequest& request) override {
    return Call(*clusters_, &v1::ClustersService::Stub::GetCluster, request, true);
  }
  absl::StatusOr<v1::ForgetClusterResponse> ForgetCluster(
      const v1::ForgetClusterRequest& request) override {
    // A repeat after a lost answer would say that there is no such cluster.
    return Call(*clusters_, &v1::ClustersService::Stub::ForgetCluster, request, false);
  }
  absl::StatusOr<v1::WhoAmIResponse> WhoAmI(const v1::WhoAmIRequest& request) override {
    return Call(*identity_, &v1::IdentityService::Stub::WhoAmI, request, true);
  }
  absl::StatusOr<v1::GetLoginInfoResponse> GetLoginInfo(
      const v1::GetLoginInfoRequest& request) override {
    return Call(*identity_, &v1::IdentityService::Stub::GetLoginInfo, request, true);
  }
  absl::StatusOr<v1::CreateTokenResponse> CreateToken(
      const v1::CreateTokenRequest& request) override {
    return Call(*identity_, &v1::IdentityService::Stub::CreateToken, request, false);
  }
  absl::StatusOr<v1::ListTokensResponse> ListTokens(const v1::ListTokensRequest& request) override {
    return Call(*identity_, &v1::IdentityService::Stub::ListTokens, request, true);
  }
  absl::StatusOr<v1::RevokeTokenResponse> RevokeToken(
      const v1::RevokeTokenRequest& request) override {
    return Call(*identity_, &v1::IdentityService::Stub::RevokeToken, request, true);
  }
  absl::StatusOr<v1::SetSecretResponse> SetSecret(const v1::SetSecretRequest& request) override {
    // A repeat with another value between them would undo that.
    return Call(*secrets_, &v1::SecretsService::Stub::SetSecret, request, false);
  }
  absl::StatusOr<v1::ListSecretsResponse> ListSecrets(
      const v1::ListSecretsRequest& request) override {
    return Call(*secrets_, &v1::SecretsService::Stub::ListSecrets, request, true);
  }
  absl::StatusOr<v1::DeleteSecretResponse> DeleteSecret(
      const v1::DeleteSecretRequest& request) override {
    // A repeat after a lost answer would say that there is no such secret.
    return Call(*secrets_, &v1::SecretsService::Stub::DeleteSecret, request, false);
  }
  absl::StatusOr<v1::CreateProjectResponse> CreateProject(
      const v1::CreateProjectRequest& request) override {
    return Call(*projects_, &v1::ProjectsService::Stub::CreateProject, request, false);
  }
  absl::StatusOr<v1::UpdateProjectResponse> UpdateProject(
      const v1::UpdateProjectRequest& request) override {
    return Call(*projects_, &v1::ProjectsService::Stub::UpdateProject, request, true);
  }
  absl::StatusOr<v1::GetProjectResponse> GetProject(const v1::GetProjectRequest& request) override {
    return Call(*projects_, &v1::ProjectsService::Stub::GetProject, request, true);
  }
  absl::StatusOr<v1::ListProjectsResponse> ListProjects(
      const v1::ListProjectsRequest& request) override {
    return Call(*projects_, &v1::ProjectsService::Stub::ListProjects, request, true);
  }
  absl::StatusOr<v1::ArchiveProjectResponse> ArchiveProject(
      const v1::ArchiveProjectRequest& request) override {
    return Call(*projects_, &v1::ProjectsService::Stub::ArchiveProject, request, false);
  }
  absl::StatusOr<v1::SetMemberResponse> SetMember(const v1::SetMemberRequest& request) override {
    return Call(*projects_, &v1::ProjectsService::Stub::SetMember, request, true);
  }
  absl::StatusOr<v1::RemoveMemberResponse> RemoveMember(
      const v1::RemoveMemberRequest& request) override {
    return Call(*projects_, &v1::ProjectsService::Stub::RemoveMember, request, false);
  }
  absl::StatusOr<v1::ListAuditRecordsResponse> ListAuditRecords(
      const v1::ListAuditRecordsRequest& request) override {
    return Call(*audit_, &v1::AuditService::Stub::ListAuditRecords, request, true);
  }
  absl::StatusOr<v1::VerifyAuditResponse> VerifyAudit(
      const v1::VerifyAuditRequest& request) override {
    return Call(*audit_, &v1::AuditService::Stub::VerifyAudit, request, true,
                options_.question_timeout);
  }
  absl::StatusOr<v1::GetUsageResponse> GetUsage(const v1::GetUsageRequest& request) override {
    return Call(*usage_, &v1::UsageService::Stub::GetUsage, request, true);
  }
  absl::StatusOr<v1::InviteClusterResponse> InviteCluster(
      const v1::InviteClusterRequest& request) override {
    // A repeat would leave a token open that nobody has seen.
    return Call(*clusters_, &v1::ClustersService::Stub::InviteCluster, request, false);
  }
  absl::StatusOr<v1::CordonClusterResponse> CordonCluster(
      const v1::CordonClusterRequest& request) override {
    return Call(*clusters_, &v1::ClustersService::Stub::CordonCluster, request, true);
  }
  absl::StatusOr<v1::UncordonClusterResponse> UncordonCluster(
      const v1::UncordonClusterRequest& request) override {
    return Call(*clusters_, &v1::ClustersService::Stub::UncordonCluster, request, true);
  }
  absl::StatusOr<v1::RevokeClusterResponse> RevokeCluster(
      const v1::RevokeClusterRequest& request) override {
    return Call(*clusters_, &v1::ClustersService::Stub::RevokeCluster, request, true);
  }
  absl::StatusOr<v1::FindMissingFilesResponse> FindMissingFiles(
      const v1::FindMissingFilesRequest& request) override {
    return Call(*files_, &v1::FilesService::Stub::FindMissingFiles, request, true);
  }
  std::unique_ptr<FileWriter> UploadFiles() override {
    return NewFileWriter({files_.get(), &options_, &address_, &was_answered_});
  }
  std::unique_ptr<FileReader> FetchFiles(const v1::FetchFilesRequest& request) override {
    return NewFileReader({files_.get(), &options_, &address_, &was_answered_}, request);
  }
  absl::StatusOr<v1::PlanJobResponse> PlanJob(const v1::PlanJobRequest& request) override {
    return Call(*jobs_, &v1::JobsService::Stub::PlanJob, request, true, options_.question_timeout);
  }
  absl::StatusOr<v1::CheckClusterResponse> CheckCluster(
      const v1::CheckClusterRequest& request) override {
    return Call(*clusters_, &v1::ClustersService::Stub::CheckCluster, request, true,
                options_.question_timeout);
  }
  absl::StatusOr<v1::DescribeClusterResponse> DescribeCluster(
      const v1::DescribeClusterRequest& request) override {
    return Call(*clusters_, &v1::ClustersService::Stub::DescribeCluster, request, true,
                options_.question_timeout);
  }

  std::unique_ptr<WatchReader> WatchJobs(v1::WatchJobsRequest request, absl::Time deadline,
                                         std::function<void()> on_heartbeat) override {
    return NewWatchReader({jobs_.get(), &options_, &address_, &was_answered_, deadline},
                          std::move(request), std::move(on_heartbeat));
  }
  std::unique_ptr<LogReader> ReadLog(v1::ReadLogRequest request, absl::Time deadline) override {
    return NewLogReader({jobs_.get(), &options_, &address_, &was_answered_, deadline},
                        std::move(request));
  }

 private:
  static bool MayRepeat(const v1::SubmitJobRequest& request) {
    return !request.request_id().empty() || request.validate_only();
  }

  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(Stub& stub,
                                grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request, bool repeatable) {
    return Call(stub, method, request, repeatable, options_.call_timeout);
  }

  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(Stub& stub,
                                grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request, bool repeatable, absl::Duration timeout) {
    Response response;
    absl::Status status = CallInto(stub, method, request, repeatable, timeout, &response);
    if (!status.ok()) return status;
    return response;
  }

  template <typename Stub, typename Request, typename Response>
  absl::Status CallInto(
      Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
      const Request& request, bool repeatable, absl::Duration timeout, Response* response) {
    if (absl::Status status = CheckSize(request); !status.ok()) return status;
    const absl::Time start = absl::Now();
    const absl::Time deadline = start + timeout;
    rpc::Backoff backoff(options_.first_backoff, std::min(options_.max_backoff, kMaxCallBackoff));
    Renewal renewal(options_.credential.get());
    bool may_have_arrived = false;
    for (bool first = true;; first = false) {
      grpc::ClientContext context;
      context.set_deadline(absl::ToChronoTime(deadline));
      const std::string bearer = AddBearer(options_, &context);
      response->Clear();
      const absl::Status status = EndOfCall((stub.*method)(&context, request, response));
      if (!IsTransportError(status)) was_answered_ = true;
      if (status.ok()) return status;
      if (absl::IsUnauthenticated(status) && options_.credential != nullptr) {
        if (absl::Status renewed = renewal.Await(bearer); !renewed.ok()) return renewed;
        if (!renewal.is_over()) continue;
      }
      absl::Status error = Explain(status, address_, timeout);
      may_have_arrived = may_have_arrived || !WasNeverSent(error);
      if (may_have_arrived) error = AsMaybeSent(std::move(error));
      const absl::Duration patience = Patience(status, address_, was_answered_, options_, timeout);
      const absl::Time give_up = start + patience;
      const bool is_in_time = absl::Now() + RetryDelay(status) < give_up;
      if (!repeatable || !MayPass(status) || !is_in_time) return error;
      if (first && options_.on_interruption) {
        options_.on_interruption(Interruption(status, address_, was_answered_), patience);
      }
      if (!backoff.Wait(give_up, RetryDelay(status))) return error;
    }
  }

  const ClientOptions options_;
  const rpc::Address address_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::JobsService::Stub> jobs_;
  const std::unique_ptr<v1::ClustersService::Stub> clusters_;
  const std::unique_ptr<v1::FilesService::Stub> files_;
  const std::unique_ptr<v1::IdentityService::Stub> identity_;
  const std::unique_ptr<v1::SecretsService::Stub> secrets_;
  const std::unique_ptr<v1::ProjectsService::Stub> projects_;
  const std::unique_ptr<v1::AuditService::Stub> audit_;
  const std::unique_ptr<v1::UsageService::Stub> usage_;
  std::atomic<bool> was_answered_ = false;  // by a broker, on any call or stream
};

}  // namespace

bool MayBeRepeated(const absl::Status& error) { return MayPass(error); }

absl::StatusOr<std::unique_ptr<Client>> Client::Create(ClientOptions options) {
  absl::StatusOr<rpc::Address> address = rpc::ParseAddress(options.address);
  if (!address.ok()) return address.status();
  if (address->is_tls) {
    address->ca = options.ca;
    if (absl::Status status = CheckCa(*address); !status.ok()) return status;
  }
  address->origin = options.address_origin;
  const bool has_token = !options.token.empty() || options.credential != nullptr;
  if (has_token && !address->is_tls && !StaysOnThisMachine(*address)) {
    return absl::InvalidArgumentError(
        fmt::format("a token is not sent to {}: everybody on the way could read it; use tls:{} if "
                    "the broker listens there by TLS, the Unix socket, or a tunnel to a port of "
                    "this machine",
                    address->text, address->text));
  }
  return std::make_unique<GrpcClient>(std::move(options), *std::move(address));
}

}  // namespace muster::client
