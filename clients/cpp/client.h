// Calls the broker with deadlines and bounded repeats, and keeps streams that survive a restart of
// the broker.
//
// Any number of threads may call a Client. A WatchReader or LogReader belongs to one
// thread and must not outlive its Client. A Client can be made without a running broker; it
// connects on the first call.
#ifndef MUSTER_CLIENTS_CPP_CLIENT_H_
#define MUSTER_CLIENTS_CPP_CLIENT_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/audit_service.pb.h"
#include "muster/v1/clusters_service.pb.h"
#include "muster/v1/files_service.pb.h"
#include "muster/v1/identity_service.pb.h"
#include "muster/v1/jobs_service.pb.h"
#include "muster/v1/projects_service.pb.h"
#include "muster/v1/secrets_service.pb.h"
#include "muster/v1/usage_service.pb.h"

namespace muster::client {

class Credential;

// Bounds the bytes of one request: what gRPC servers take by default, less room for framing.
inline constexpr size_t kMaxRequestBytes = (4 << 20) - (64 << 10);

struct ClientOptions {
  // affects behaviour
  std::string address;                     // see ParseAddress
  std::string address_origin;              // where the address comes from, for errors; may be empty
  std::string token;                       // goes with every call; empty: none
  std::shared_ptr<Credential> credential;  // goes in its place; null: none
  std::string ca;                          // for tls: the CAs by which the broker is known, as PEM
  absl::Duration call_timeout = absl::Seconds(30);  // of one unary call, all its attempts together
  // Bounds a call that a cluster's agent answers, which may have to ask its scheduler first.
  absl::Duration question_timeout = absl::Minutes(2);
  absl::Duration stream_patience =
      absl::Minutes(10);  // how long a broken stream is resumed without success
  // The same if nobody listens on the Unix socket and no broker has answered this client yet: long
  // enough for a broker that restarts, and short enough for a mistyped address.
  absl::Duration absent_patience = absl::Seconds(2);
  // Called once for each call that is repeated and for each interruption of a stream, before the
  // first wait, with how long the client will try. Any thread that calls or reads may call it.
  std::function<void(const absl::Status&, absl::Duration patience)> on_interruption;
  // affects performance
  absl::Duration first_backoff = absl::Milliseconds(100);  // doubles, with jitter
  absl::Duration max_backoff = absl::Seconds(5);  // of a stream; of a unary call at most 1 s
};

// Returns whether a call that failed with this error surely never reached a broker: each attempt
// found nobody to connect to.
bool WasNeverSent(const absl::Status& error);

// Returns whether a call that failed with this error may well succeed later: nobody answered, or
// the broker said when to ask again.
bool MayBeRepeated(const absl::Status& error);

// Makes a UUID (version 4) for SubmitJobRequest.request_id.
std::string NewRequestId();

// Every change of the chosen jobs, each once and in order, over as many connections as it
// takes.
class WatchReader {
 public:
  virtual ~WatchReader() = default;
  // Returns the next change; nothing at the end. Heartbeats are left out. DEADLINE_EXCEEDED: the
  // deadline of the reader has passed. After nothing or an error it must not be called again.
  virtual absl::StatusOr<std::optional<v1::JobChange>> Next() = 0;
};

// The bytes of a rank's outputs, each once and in order. A gap between a piece and the previous one
// of its stream means that the broker has not kept the bytes between them.
class LogReader {
 public:
  virtual ~LogReader() = default;
  // Returns the next piece; nothing after all streams' `end`. Errors as in WatchReader::Next.
  virtual absl::StatusOr<std::optional<v1::ReadLogResponse>> Next() = 0;
};

// An upload of files to the broker. One that is destroyed before Finish leaves nothing there.
class FileWriter {
 public:
  virtual ~FileWriter() = default;
  // Waits until there is room. False: the broker takes no more, and Finish returns the reason.
  virtual bool Write(const v1::UploadFilesRequest& request) = 0;
  // Ends the upload and waits for the answer. Call it once, and last.
  virtual absl::StatusOr<v1::UploadFilesResponse> Finish() = 0;
};

// Reads the files of a run from its cluster, piece by piece. It is not resumed.
class FileReader {
 public:
  virtual ~FileReader() = default;
  // Returns the next piece; nothing after the last one. After nothing or an error it must not be
  // called again.
  virtual absl::StatusOr<std::optional<v1::FetchFilesResponse>> Next() = 0;
};

class Client {
 public:
  // INVALID_ARGUMENT: not an address, one of TLS without a CA, or a token that would travel through
  // a network in the clear.
  static absl::StatusOr<std::unique_ptr<Client>> Create(ClientOptions options);
  virtual ~Client() = default;

  // Errors of every call are what the broker answered, with its details; or, if there was no
  // answer, UNAVAILABLE or DEADLINE_EXCEEDED with the address and the remedy; PERMISSION_DENIED at
  // once if this user may not connect to the socket. A call that found no broker, or one that asked
  // for patience (RetryInfo), is repeated until call_timeout (or absent_patience) is over;
  // SubmitJob and SubmitJobs only if each job has a request_id.
  virtual absl::StatusOr<v1::SubmitJobResponse> SubmitJob(const v1::SubmitJobRequest& request) = 0;
  virtual absl::StatusOr<v1::SubmitJobsResponse> SubmitJobs(
      const v1::SubmitJobsRequest& request) = 0;
  virtual absl::StatusOr<v1::GetJobResponse> GetJob(const v1::GetJobRequest& request) = 0;
  virtual absl::StatusOr<v1::ListJobsResponse> ListJobs(const v1::ListJobsRequest& request) = 0;
  // Does the same with a message of the caller's. A page of many jobs is read much faster into one
  // that is on an arena.
  virtual absl::Status ReadJobs(const v1::ListJobsRequest& request, v1::ListJobsResponse* page) = 0;
  virtual absl::StatusOr<v1::CountJobsResponse> CountJobs(const v1::CountJobsRequest& request) = 0;
  virtual absl::StatusOr<v1::ListTransitionsResponse> ListTransitions(
      const v1::ListTransitionsRequest& request) = 0;
  virtual absl::StatusOr<v1::UpdateJobResponse> UpdateJob(const v1::UpdateJobRequest& request) = 0;
  // These three change up to 1000 jobs of a filter; ChangeAll repeats them until there are no more.
  virtual absl::StatusOr<v1::CancelJobsResponse> CancelJobs(
      const v1::CancelJobsRequest& request) = 0;
  virtual absl::StatusOr<v1::HoldJobsResponse> HoldJobs(const v1::HoldJobsRequest& request) = 0;
  virtual absl::StatusOr<v1::MoveJobsResponse> MoveJobs(const v1::MoveJobsRequest& request) = 0;
  virtual absl::StatusOr<v1::ReleaseJobsResponse> ReleaseJobs(
      const v1::ReleaseJobsRequest& request) = 0;
  // Repeated only if it has a request_id.
  virtual absl::StatusOr<v1::RerunJobsResponse> RerunJobs(const v1::RerunJobsRequest& request) = 0;
  // It is not repeated: a second signal may mean something else to a program.
  virtual absl::StatusOr<v1::SignalJobsResponse> SignalJobs(
      const v1::SignalJobsRequest& request) = 0;
  virtual absl::StatusOr<v1::ListLogsResponse> ListLogs(const v1::ListLogsRequest& request) = 0;
  virtual absl::StatusOr<v1::ListClustersResponse> ListClusters(
      const v1::ListClustersRequest& request) = 0;
  virtual absl::StatusOr<v1::GetClusterResponse> GetCluster(
      const v1::GetClusterRequest& request) = 0;
  virtual absl::StatusOr<v1::WhoAmIResponse> WhoAmI(const v1::WhoAmIRequest& request) = 0;
  virtual absl::StatusOr<v1::GetLoginInfoResponse> GetLoginInfo(
      const v1::GetLoginInfoRequest& request) = 0;
  virtual absl::StatusOr<v1::CreateTokenResponse> CreateToken(
      const v1::CreateTokenRequest& request) = 0;
  virtual absl::StatusOr<v1::ListTokensResponse> ListTokens(
      const v1::ListTokensRequest& request) = 0;
  virtual absl::StatusOr<v1::RevokeTokenResponse> RevokeToken(
      const v1::RevokeTokenRequest& request) = 0;
  virtual absl::StatusOr<v1::SetSecretResponse> SetSecret(const v1::SetSecretRequest& request) = 0;
  virtual absl::StatusOr<v1::ListSecretsResponse> ListSecrets(
      const v1::ListSecretsRequest& request) = 0;
  virtual absl::StatusOr<v1::DeleteSecretResponse> DeleteSecret(
      const v1::DeleteSecretRequest& request) = 0;
  virtual absl::StatusOr<v1::CreateProjectResponse> CreateProject(
      const v1::CreateProjectRequest& request) = 0;
  virtual absl::StatusOr<v1::UpdateProjectResponse> UpdateProject(
      const v1::UpdateProjectRequest& request) = 0;
  virtual absl::StatusOr<v1::GetProjectResponse> GetProject(
      const v1::GetProjectRequest& request) = 0;
  virtual absl::StatusOr<v1::ListProjectsResponse> ListProjects(
      const v1::ListProjectsRequest& request) = 0;
  virtual absl::StatusOr<v1::ArchiveProjectResponse> ArchiveProject(
      const v1::ArchiveProjectRequest& request) = 0;
  virtual absl::StatusOr<v1::SetMemberResponse> SetMember(const v1::SetMemberRequest& request) = 0;
  virtual absl::StatusOr<v1::RemoveMemberResponse> RemoveMember(
      const v1::RemoveMemberRequest& request) = 0;
  virtual absl::StatusOr<v1::ListAuditRecordsResponse> ListAuditRecords(
      const v1::ListAuditRecordsRequest& request) = 0;
  // It reads the whole log, and waits as long as a question to a cluster may take.
  virtual absl::StatusOr<v1::VerifyAuditResponse> VerifyAudit(
      const v1::VerifyAuditRequest& request) = 0;
  virtual absl::StatusOr<v1::GetUsageResponse> GetUsage(const v1::GetUsageRequest& request) = 0;
  virtual absl::StatusOr<v1::ForgetClusterResponse> ForgetCluster(
      const v1::ForgetClusterRequest& request) = 0;
  virtual absl::StatusOr<v1::CordonClusterResponse> CordonCluster(
      const v1::CordonClusterRequest& request) = 0;
  virtual absl::StatusOr<v1::UncordonClusterResponse> UncordonCluster(
      const v1::UncordonClusterRequest& request) = 0;
  virtual absl::StatusOr<v1::InviteClusterResponse> InviteCluster(
      const v1::InviteClusterRequest& request) = 0;
  virtual absl::StatusOr<v1::RevokeClusterResponse> RevokeCluster(
      const v1::RevokeClusterRequest& request) = 0;

  virtual absl::StatusOr<v1::FindMissingFilesResponse> FindMissingFiles(
      const v1::FindMissingFilesRequest& request) = 0;
  // These have no deadline.
  virtual std::unique_ptr<FileWriter> UploadFiles() = 0;
  virtual std::unique_ptr<FileReader> FetchFiles(const v1::FetchFilesRequest& request) = 0;

  // Questions to agents: they have question_timeout instead.
  virtual absl::StatusOr<v1::PlanJobResponse> PlanJob(const v1::PlanJobRequest& request) = 0;
  virtual absl::StatusOr<v1::CheckClusterResponse> CheckCluster(
      const v1::CheckClusterRequest& request) = 0;
  virtual absl::StatusOr<v1::DescribeClusterResponse> DescribeCluster(
      const v1::DescribeClusterRequest& request) = 0;

  // Open streams, which are resumed where they broke off. The deadline bounds the whole of it.
  // `on_heartbeat`, if given, is called by Next with each heartbeat: at the beginning, and when
  // nothing has changed for seconds.
  virtual std::unique_ptr<WatchReader> WatchJobs(v1::WatchJobsRequest request, absl::Time deadline,
                                                 std::function<void()> on_heartbeat = {}) = 0;
  virtual std::unique_ptr<LogReader> ReadLog(v1::ReadLogRequest request, absl::Time deadline) = 0;
};

// Cancels, holds or releases all jobs of a filter, however many calls it takes. Each answer is
// given to `on_answer`.
template <typename Request, typename Response>
absl::Status ChangeAll(Client& client, absl::StatusOr<Response> (Client::*method)(const Request&),
                       const Request& request,
                       const std::function<void(const Response&)>& on_answer) {
  // Jobs that keep changing between the look at them and the change are given up after this many
  // tries.
  constexpr int kMaxAnswersWithoutJobs = 100;
  for (int without_jobs = 0; without_jobs < kMaxAnswersWithoutJobs;) {
    const absl::StatusOr<Response> answer = (client.*method)(request);
    if (!answer.ok()) return answer.status();
    on_answer(*answer);
    if (!answer->more() || request.validate_only()) break;
    without_jobs = answer->jobs().empty() ? without_jobs + 1 : 0;
  }
  return absl::OkStatus();
}

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_CLIENT_H_
