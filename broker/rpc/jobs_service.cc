// Implements JobsService: finds out who asks, calls a use case, passes its answer on. No handler
// blocks.
#include <grpc/slice.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "broker/app/change_jobs.h"
#include "broker/app/count_jobs.h"
#include "broker/app/get_job.h"
#include "broker/app/list_jobs.h"
#include "broker/app/list_transitions.h"
#include "broker/app/plan_job.h"
#include "broker/app/read_log.h"
#include "broker/app/rerun_jobs.h"
#include "broker/app/run_logs.h"
#include "broker/app/signal_jobs.h"
#include "broker/app/submit_jobs.h"
#include "broker/app/update_job.h"
#include "broker/app/watch_jobs.h"
#include "broker/rpc/caller.h"
#include "broker/rpc/context.h"
#include "broker/rpc/owned_messages.h"
#include "broker/rpc/pull_stream.h"
#include "broker/rpc/unary.h"
#include "contract/signal_error.h"
#include "muster/v1/jobs_service.grpc.pb.h"

namespace muster::broker {
namespace {

absl::StatusOr<v1::WatchJobsRequest> ParseWatch(const grpc::ByteBuffer& bytes) {
  v1::WatchJobsRequest request;
  grpc::Slice slice;
  const bool is_good = bytes.DumpToSingleSlice(&slice).ok() &&
                       request.ParseFromArray(slice.begin(), static_cast<int>(slice.size()));
  if (!is_good) return absl::InternalError("the request cannot be parsed");
  return request;
}

// Bytes that live as long as somebody sends them.
grpc::ByteBuffer ToBuffer(ChangeBytes bytes) {
  auto owner = std::make_unique<ChangeBytes>(std::move(bytes));
  void* const begin = const_cast<char*>((*owner)->data());  // gRPC does not write there
  const size_t size = (*owner)->size();
  const grpc::Slice slice(
      begin, size, [](void* kept) { delete static_cast<ChangeBytes*>(kept); }, owner.release());
  return grpc::ByteBuffer(&slice, 1);
}

// WatchJobs passes bytes on, see WatchSource.
using ServiceBase =
    v1::JobsService::WithRawCallbackMethod_WatchJobs<v1::JobsService::CallbackService>;

class JobsService : public ServiceBase {
 public:
  explicit JobsService(const Context& context) : context_(context) {
    SetMessageAllocatorFor_SubmitJob(&submit_job_messages_);
    SetMessageAllocatorFor_SubmitJobs(&submit_jobs_messages_);
  }

  grpc::ServerUnaryReactor* SubmitJob(grpc::CallbackServerContext* call,
                                      const v1::SubmitJobRequest*,
                                      v1::SubmitJobResponse* out) override {
    auto* reactor = call->DefaultReactor();
    broker::SubmitJob(Caller(call), context_.app, submit_job_messages_.TakeRequest(call),
                      AnswerInto(reactor, out));
    return reactor;
  }

  grpc::ServerUnaryReactor* SubmitJobs(grpc::CallbackServerContext* call,
                                       const v1::SubmitJobsRequest*,
                                       v1::SubmitJobsResponse* out) override {
    auto* reactor = call->DefaultReactor();
    broker::SubmitJobs(Caller(call), context_.app, submit_jobs_messages_.TakeRequest(call),
                       AnswerInto(reactor, out));
    return reactor;
  }

  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* call, const v1::GetJobRequest* in,
                                   v1::GetJobResponse* out) override {
    auto* reactor = call->DefaultReactor();
    OnReaders(context_.readers, reactor, [this, caller = Caller(call), reactor, in, out] {
      Answer(reactor, out, broker::GetJob(caller, context_.app, *in));
    });
    return reactor;
  }

  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* call,
                                     const v1::ListJobsRequest* in,
                                     v1::ListJobsResponse* out) override {
    auto* reactor = call->DefaultReactor();
    OnReaders(context_.readers, reactor, [this, caller = Caller(call), reactor, in, out] {
      Answer(reactor, out, broker::ListJobs(caller, context_.app, *in));
    });
    return reactor;
  }

  grpc::ServerUnaryReactor* CancelJobs(grpc::CallbackServerContext* call,
                                       const v1::CancelJobsRequest* in,
                                       v1::CancelJobsResponse* out) override {
    return Change(JobChange::kCancel, call, in, out);
  }

  grpc::ServerUnaryReactor* HoldJobs(grpc::CallbackServerContext* call,
                                     const v1::HoldJobsRequest* in,
                                     v1::HoldJobsResponse* out) override {
    return Change(JobChange::kHold, call, in, out);
  }

  grpc::ServerUnaryReactor* ReleaseJobs(grpc::CallbackServerContext* call,
                                        const v1::ReleaseJobsRequest* in,
                                        v1::ReleaseJobsResponse* out) override {
    return Change(JobChange::kRelease, call, in, out);
  }

  grpc::ServerUnaryReactor* MoveJobs(grpc::CallbackServerContext* call,
                                     const v1::MoveJobsRequest* in,
                                     v1::MoveJobsResponse* out) override {
    return Change(JobChange::kMove, call, in, out);
  }

  grpc::ServerUnaryReactor* CountJobs(grpc::CallbackServerContext* call,
                                      const v1::CountJobsRequest* in,
                                      v1::CountJobsResponse* out) override {
    auto* reactor = call->DefaultReactor();
    OnReaders(context_.app.counters, reactor, [this, caller = Caller(call), reactor, in, out] {
      Answer(reactor, out, broker::CountJobs(caller, context_.app, *in));
    });
    return reactor;
  }

  grpc::ServerUnaryReactor* ListTransitions(grpc::CallbackServerContext* call,
                                            const v1::ListTransitionsRequest* in,
                                            v1::ListTransitionsResponse* out) override {
    auto* reactor = call->DefaultReactor();
    OnReaders(context_.readers, reactor, [this, caller = Caller(call), reactor, in, out] {
      Answer(reactor, out, broker::ListTransitions(caller, context_.app, *in));
    });
    return reactor;
  }

  grpc::ServerUnaryReactor* UpdateJob(grpc::CallbackServerContext* call,
                                      const v1::UpdateJobRequest* in,
                                      v1::UpdateJobResponse* out) override {
    auto* reactor = call->DefaultReactor();
    broker::UpdateJob(Caller(call), context_.app, *in, AnswerInto(reactor, out));
    return reactor;
  }

  grpc::ServerUnaryReactor* RerunJobs(grpc::CallbackServerContext* call,
                                      const v1::RerunJobsRequest* in,
                                      v1::RerunJobsResponse* out) override {
    auto* reactor = call->DefaultReactor();
    broker::RerunJobs(Caller(call), context_.app, *in, AnswerInto(reactor, out));
    return reactor;
  }

  grpc::ServerUnaryReactor* SignalJobs(grpc::CallbackServerContext* call,
                                       const v1::SignalJobsRequest* in,
                                       v1::SignalJobsResponse* out) override {
    auto* reactor = call->DefaultReactor();
    broker::SignalJobs(Caller(call), context_.app, *in, absl::FromChrono(call->deadline()),
                       [reactor, out](const absl::StatusOr<std::vector<SentSignal>>& sent) {
                         if (!sent.ok()) return reactor->Finish(rpc::ToGrpc(sent.status()));
                         for (const SentSignal& one : *sent) {
                           v1::JobSignal* signal = out->add_signals();
                           signal->set_job_id(one.job);
                           if (!one.status.ok())
                             *signal->mutable_error() = contract::ToSignalError(one.status);
                         }
                         reactor->Finish(grpc::Status::OK);
                       });
    return reactor;
  }

  grpc::ServerUnaryReactor* PlanJob(grpc::CallbackServerContext* call, const v1::PlanJobRequest* in,
                                    v1::PlanJobResponse* out) override {
    auto* reactor = call->DefaultReactor();
    broker::PlanJob(Caller(call), context_.app, *in, absl::FromChrono(call->deadline()),
                    AnswerInto(reactor, out));
    return reactor;
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* WatchJobs(grpc::CallbackServerContext* call,
                                                        const grpc::ByteBuffer* in) override {
    const absl::StatusOr<v1::WatchJobsRequest> request = ParseWatch(*in);
    const Principal caller = Caller(call);
    return PullStream<grpc::ByteBuffer, ChangeBytes>::Start(
        context_, caller,
        request.ok() ? broker::WatchJobs(caller, context_.app, *request)
                     : absl::StatusOr<std::unique_ptr<WatchSource>>(request.status()),
        ToBuffer);
  }

  grpc::ServerUnaryReactor* ListLogs(grpc::CallbackServerContext* call,
                                     const v1::ListLogsRequest* in,
                                     v1::ListLogsResponse* out) override {
    auto* reactor = call->DefaultReactor();
    OnReaders(context_.readers, reactor, [this, caller = Caller(call), reactor, in, out] {
      Answer(reactor, out, broker::ListLogs(caller, context_.app, *in));
    });
    return reactor;
  }

  grpc::ServerWriteReactor<v1::ReadLogResponse>* ReadLog(grpc::CallbackServerContext* call,
                                                         const v1::ReadLogRequest* in) override {
    const Principal caller = Caller(call);
    return StartPull(context_, caller, broker::ReadLog(caller, context_.app, *in));
  }

 private:
  Principal Caller(grpc::CallbackServerContext* call) const { return CallerOf(context_, *call); }

  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Change(JobChange change, grpc::CallbackServerContext* call,
                                   const Request* in, Response* out) {
    auto* reactor = call->DefaultReactor();
    ChangeRequest request{.change = change,
                          .filter = in->filter(),
                          .reason = in->reason(),
                          .validate_only = in->validate_only()};
    request.jobs.assign(in->job_ids().begin(), in->job_ids().end());
    ChangeJobs(Caller(call), context_.app, std::move(request),
               [reactor, out](absl::StatusOr<ChangedJobs> result) {
                 if (!result.ok()) return reactor->Finish(rpc::ToGrpc(result.status()));
                 out->mutable_jobs()->Add(std::make_move_iterator(result->jobs.begin()),
                                          std::make_move_iterator(result->jobs.end()));
                 out->set_matched_count(result->matched_count);
                 out->set_more(result->more);
                 reactor->Finish(grpc::Status::OK);
               });
    return reactor;
  }

  const Context context_;
  OwnedMessages<v1::SubmitJobRequest, v1::SubmitJobResponse> submit_job_messages_;
  OwnedMessages<v1::SubmitJobsRequest, v1::SubmitJobsResponse> submit_jobs_messages_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeJobsService(const Context& context) {
  return std::make_unique<JobsService>(context);
}

}  // namespace muster::broker
