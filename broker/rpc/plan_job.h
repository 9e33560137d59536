// Jobs.PlanJob: shows what would be submitted for a job, on each cluster that could take it.
#ifndef MUSTER_BROKER_RPC_PLAN_JOB_H_
#define MUSTER_BROKER_RPC_PLAN_JOB_H_

#include <string>

#include "broker/rpc/context.h"
#include "muster/v1/jobs_service.pb.h"

namespace grpc {
class CallbackServerContext;
class ServerUnaryReactor;
}  // namespace grpc

namespace muster::broker {

// Answers the call. Does not block. `in` and `out` live until the answer.
void PlanJob(const Context& context, grpc::CallbackServerContext* call, std::string user,
             const v1::PlanJobRequest* in, v1::PlanJobResponse* out,
             grpc::ServerUnaryReactor* reactor);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_PLAN_JOB_H_
