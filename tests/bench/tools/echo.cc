#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include "absl/status/status.h"
#include "muster/agent/v1/agent_link.grpc.pb.h"
#include "muster/v1/jobs_service.grpc.pb.h"
#include "tests/bench/tools/tools.h"

namespace muster::bench {
namespace {

class EchoJobs final : public v1::JobsService::CallbackService {
  grpc::ServerUnaryReactor* SubmitJob(grpc::CallbackServerContext* context,
                                      const v1::SubmitJobRequest* request,
                                      v1::SubmitJobResponse* response) override {
    response->set_job_id(request->spec().name().size());
    return Answer(context);
  }
  grpc::ServerUnaryReactor* SubmitJobs(grpc::CallbackServerContext* context,
                                       const v1::SubmitJobsRequest* request,
                                       v1::SubmitJobsResponse* response) override {
    for (const auto& one : request->requests()) {
      response->add_responses()->set_job_id(one.spec().name().size());
    }
    return Answer(context);
  }
  static grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

// Answers one agent's stream: a welcome for the hello, an acknowledgement for all that follows.
class EchoStream final
    : public grpc::ServerBidiReactor<agent::v1::ConnectRequest, agent::v1::ConnectResponse> {
 public:
  EchoStream() { StartRead(&request_); }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    response_.Clear();
    if (request_.has_hello()) {
      response_.mutable_welcome()->set_agent_epoch(1);
    } else {
      response_.mutable_event_ack()->set_sequence(0);
    }
    StartWrite(&response_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    StartRead(&request_);
  }
  void OnDone() override { delete this; }

  agent::v1::ConnectRequest request_;
  agent::v1::ConnectResponse response_;
};

class EchoAgents final : public agent::v1::AgentLinkService::CallbackService {
  grpc::ServerBidiReactor<agent::v1::ConnectRequest, agent::v1::ConnectResponse>* Connect(
      grpc::CallbackServerContext*) override {
    return new EchoStream;  // deletes itself
  }
};

}  // namespace

absl::Status ServeEcho(const Load& load) {
  EchoJobs jobs;
  EchoAgents agents;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(load.address, grpc::InsecureServerCredentials());
  builder.RegisterService(&jobs);
  builder.RegisterService(&agents);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return absl::UnavailableError("the echo server cannot listen");
  fmt::print("{{\"pid\": {}}}\n", getpid());
  std::fflush(stdout);
  AwaitEndOfInput();
  server->Shutdown();
  return absl::OkStatus();
}

}  // namespace muster::bench
