#include "agents/app/enroll_command.h"

#include <fmt/format.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "absl/time/clock.h"
#include "agents/core/identity.h"
#include "contract/text.h"
#include "muster/agent/v1/enrollment.grpc.pb.h"
#include "pki/certificates.h"
#include "pki/join_token.h"
#include "pki/shown_certificates.h"
#include "rpc/address.h"
#include "rpc/status.h"

namespace muster::agents {
namespace {

absl::StatusOr<agent::v1::EnrollResponse> Ask(const rpc::Address& address, const std::string& ca,
                                              const agent::v1::EnrollRequest& request,
                                              absl::Duration patience) {
  grpc::SslCredentialsOptions trust;
  trust.pem_root_certs = ca;
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  const auto stub = agent::v1::EnrollmentService::NewStub(
      grpc::CreateCustomChannel(address.target, grpc::SslCredentials(trust), arguments));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + patience));
  agent::v1::EnrollResponse response;
  const grpc::Status status = stub->Enroll(&context, request, &response);
  if (status.ok()) return response;
  return rpc::FromGrpc(status);
}

}  // namespace

absl::StatusOr<std::string> Enroll(const EnrollOptions& options) {
  const absl::StatusOr<std::string> fingerprint = pki::FingerprintIn(options.token);
  if (!fingerprint.ok()) return fingerprint.status();
  const std::string_view place = options.broker.starts_with("tls:")
                                     ? std::string_view(options.broker).substr(4)
                                     : std::string_view(options.broker);
  const absl::StatusOr<rpc::Address> address = rpc::ParseAddress(fmt::format("tls:{}", place));
  if (!address.ok()) return address.status();
  const absl::StatusOr<std::string> ca =
      pki::ShownCa(std::string(place), *fingerprint, options.patience);
  if (absl::IsUnauthenticated(ca.status())) {
    return absl::UnauthenticatedError(ToAbsl(fmt::format(
        "{} is not the broker that has made the token: {}", place, ToStd(ca.status().message()))));
  }
  if (!ca.ok()) return ca.status();
  if (mkdir(options.state_dir.c_str(), 0700) != 0 && errno != EEXIST)
    return absl::ErrnoToStatus(errno, ToAbsl(fmt::format("cannot make {}", options.state_dir)));

  const std::string key = pki::MakeKey();
  const absl::StatusOr<std::string> asked = pki::MakeRequest(key);
  if (!asked.ok()) return asked.status();
  agent::v1::EnrollRequest request;
  request.set_token(options.token);
  request.set_certificate_request(*asked);
  const absl::StatusOr<agent::v1::EnrollResponse> response =
      Ask(*address, *ca, request, options.patience);
  if (!response.ok()) return response.status();
  const Identity identity{{key, response->certificate()}, *ca};
  if (absl::Status status = pki::CheckPair(identity.own); !status.ok()) return status;
  const std::string directory = options.state_dir + "/tls";
  if (absl::Status status = WriteIdentity(directory, identity); !status.ok()) return status;
  return fmt::format(
      "enrolled as the agent of cluster {0}; its key and certificate are in {1}\n"
      "Next: start it:\n"
      "  muster-agent --cluster {0} --kind KIND --broker {2} --state-dir {3}\n",
      response->cluster(), directory, address->text, options.state_dir);
}

}  // namespace muster::agents
