// Implements ProjectsService: finds out who asks, calls a use case, passes its answer on.
#include <grpcpp/grpcpp.h>

#include <memory>

#include "broker/app/projects.h"
#include "broker/rpc/caller.h"
#include "broker/rpc/context.h"
#include "broker/rpc/unary.h"
#include "muster/v1/projects_service.grpc.pb.h"

namespace muster::broker {
namespace {

class ProjectsService : public v1::ProjectsService::CallbackService {
 public:
  explicit ProjectsService(const Context& context) : context_(context) {}

  grpc::ServerUnaryReactor* CreateProject(grpc::CallbackServerContext* call,
                                          const v1::CreateProjectRequest* in,
                                          v1::CreateProjectResponse* out) override {
    return Change(call, in, out, broker::CreateProject);
  }
  grpc::ServerUnaryReactor* UpdateProject(grpc::CallbackServerContext* call,
                                          const v1::UpdateProjectRequest* in,
                                          v1::UpdateProjectResponse* out) override {
    return Change(call, in, out, broker::UpdateProject);
  }
  grpc::ServerUnaryReactor* ArchiveProject(grpc::CallbackServerContext* call,
                                           const v1::ArchiveProjectRequest* in,
                                           v1::ArchiveProjectResponse* out) override {
    return Change(call, in, out, broker::ArchiveProject);
  }
  grpc::ServerUnaryReactor* SetMember(grpc::CallbackServerContext* call,
                                      const v1::SetMemberRequest* in,
                                      v1::SetMemberResponse* out) override {
    return Change(call, in, out, broker::SetMember);
  }
  grpc::ServerUnaryReactor* RemoveMember(grpc::CallbackServerContext* call,
                                         const v1::RemoveMemberRequest* in,
                                         v1::RemoveMemberResponse* out) override {
    return Change(call, in, out, broker::RemoveMember);
  }

  grpc::ServerUnaryReactor* GetProject(grpc::CallbackServerContext* call,
                                       const v1::GetProjectRequest* in,
                                       v1::GetProjectResponse* out) override {
    auto* reactor = call->DefaultReactor();
    Answer(reactor, out, broker::GetProject(Caller(call), context_.app, *in));
    return reactor;
  }
  grpc::ServerUnaryReactor* ListProjects(grpc::CallbackServerContext* call,
                                         const v1::ListProjectsRequest* in,
                                         v1::ListProjectsResponse* out) override {
    auto* reactor = call->DefaultReactor();
    OnReaders(context_.readers, reactor, [this, caller = Caller(call), reactor, in, out] {
      Answer(reactor, out, broker::ListProjects(caller, context_.app, *in));
    });
    return reactor;
  }

 private:
  // Runs a use case that waits for the disk.
  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Change(grpc::CallbackServerContext* call, const Request* in,
                                   Response* out,
                                   void (*use_case)(const Principal&, const Services&,
                                                    const Request&, ProjectDone<Response>)) {
    auto* reactor = call->DefaultReactor();
    OnReaders(context_.token_workers, reactor,
              [this, caller = Caller(call), reactor, in, out, use_case] {
                use_case(caller, context_.app, *in, AnswerInto(reactor, out));
              });
    return reactor;
  }

  Principal Caller(grpc::CallbackServerContext* call) const { return CallerOf(context_, *call); }

  const Context context_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeProjectsService(const Context& context) {
  return std::make_unique<ProjectsService>(context);
}

}  // namespace muster::broker
