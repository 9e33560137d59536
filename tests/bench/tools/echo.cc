#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "muster/v1/jobs_service.grpc.pb.h"
#include "tests/bench/tools/tools.h"

namespace muster::bench {
namespace {

class EchoJobs final : public v1::Jobs::CallbackService {
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

}  // namespace

absl::Status ServeEcho(const Load& load) {
  EchoJobs service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(load.address, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return absl::UnavailableError("the echo server cannot listen");
  fmt::print("{{\"serving\": true}}\n");
  std::fflush(stdout);
  AwaitEndOfInput();
  server->Shutdown();
  return absl::OkStatus();
}

}  // namespace muster::bench
