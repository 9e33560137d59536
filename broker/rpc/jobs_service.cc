// The service Jobs: translate, call, translate. No handler blocks.
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>

#include "broker/engine/engine.h"
#include "broker/rpc/context.h"
#include "broker/rpc/plan_job.h"
#include "broker/rpc/read_log.h"
#include "broker/rpc/requests.h"
#include "broker/rpc/submit_files.h"
#include "broker/rpc/unary.h"
#include "broker/rpc/users.h"
#include "broker/rpc/watch_jobs.h"
#include "broker/store/list_limits.h"
#include "broker/store/store.h"
#include "muster/v1/jobs_service.grpc.pb.h"
#include "rpc/warnings.h"

namespace muster::broker {
namespace {

// What was asked for is done, so the answer must arrive: beyond kMaxPageBytes only what every job
// has.
template <typename Response>
void AddWithinBounds(std::vector<v1::Job> jobs, Response* out) {
  size_t bytes = 0;
  for (v1::Job& job : jobs) {
    bytes += job.ByteSizeLong();
    v1::Job& added = *out->add_jobs();
    if (bytes <= store::kMaxPageBytes) {
      added = std::move(job);
    } else {
      added.set_id(job.id());
      added.set_state(job.state());
    }
  }
}

void AddWarnings(const SubmitWarnings& warnings, grpc::CallbackServerContext* call) {
  for (const std::string& warning : warnings) call->AddTrailingMetadata(rpc::kWarningKey, warning);
}

class JobsService : public v1::Jobs::CallbackService {
 public:
  explicit JobsService(const Context& context) : context_(context) {}

  grpc::ServerUnaryReactor* SubmitJob(grpc::CallbackServerContext* call,
                                      const v1::SubmitJobRequest* in,
                                      v1::SubmitJobResponse* out) override {
    auto* reactor = call->DefaultReactor();
    absl::StatusOr<core::Submit> submit = ToSubmit(*in, User(call));
    if (!submit.ok()) {
      reactor->Finish(rpc::ToGrpc(submit.status()));
      return reactor;
    }
    SubmitWithFiles(context_, *std::move(submit),
                    [call, reactor, out](absl::StatusOr<v1::SubmitJobsResponse> result,
                                         const SubmitWarnings& warnings) {
                      AddWarnings(warnings, call);
                      if (result.ok()) *out = std::move(*result->mutable_responses(0));
                      reactor->Finish(rpc::ToGrpc(result.status()));
                    });
    return reactor;
  }

  grpc::ServerUnaryReactor* SubmitJobs(grpc::CallbackServerContext* call,
                                       const v1::SubmitJobsRequest* in,
                                       v1::SubmitJobsResponse* out) override {
    auto* reactor = call->DefaultReactor();
    absl::StatusOr<core::Submit> submit = ToSubmit(*in, User(call));
    if (!submit.ok()) {
      reactor->Finish(rpc::ToGrpc(submit.status()));
      return reactor;
    }
    SubmitWithFiles(context_, *std::move(submit),
                    [call, reactor, out](absl::StatusOr<v1::SubmitJobsResponse> result,
                                         const SubmitWarnings& warnings) {
                      AddWarnings(warnings, call);
                      Answer(reactor, out, std::move(result));
                    });
    return reactor;
  }

  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* call, const v1::GetJobRequest* in,
                                   v1::GetJobResponse* out) override {
    auto* reactor = call->DefaultReactor();
    OnReaders(context_.readers, reactor, [this, reactor, in, out] {
      absl::StatusOr<v1::Job> job = context_.store->GetJob(in->job_id());
      if (!job.ok()) return reactor->Finish(rpc::ToGrpc(job.status()));
      *out->mutable_job() = *std::move(job);
      if (out->job().state() != v1::JOB_STATE_QUEUED) return reactor->Finish(grpc::Status::OK);
      Explain({out->mutable_job()}, reactor);
    });
    return reactor;
  }

  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* call,
                                     const v1::ListJobsRequest* in,
                                     v1::ListJobsResponse* out) override {
    auto* reactor = call->DefaultReactor();
    OnReaders(context_.readers, reactor, [this, reactor, in, out] {
      if (absl::Status status = List(*in, out); !status.ok())
        return reactor->Finish(rpc::ToGrpc(status));
      std::vector<v1::Job*> queued;
      for (v1::Job& job : *out->mutable_jobs()) {
        if (job.state() == v1::JOB_STATE_QUEUED) queued.push_back(&job);
      }
      Explain(std::move(queued), reactor);
    });
    return reactor;
  }

  grpc::ServerUnaryReactor* CancelJobs(grpc::CallbackServerContext* call,
                                       const v1::CancelJobsRequest* in,
                                       v1::CancelJobsResponse* out) override {
    auto* reactor = call->DefaultReactor();
    absl::StatusOr<core::Cancel> cancel = ToCancel(*in, User(call));
    if (!cancel.ok()) {
      reactor->Finish(rpc::ToGrpc(cancel.status()));
      return reactor;
    }
    context_.engine->Cancel(*std::move(cancel), AnswerWithJobs(reactor, in, out));
    return reactor;
  }

  grpc::ServerUnaryReactor* HoldJobs(grpc::CallbackServerContext* call,
                                     const v1::HoldJobsRequest* in,
                                     v1::HoldJobsResponse* out) override {
    return Hold(call, ToHold(*in, User(call)), in, out);
  }

  grpc::ServerUnaryReactor* ReleaseJobs(grpc::CallbackServerContext* call,
                                        const v1::ReleaseJobsRequest* in,
                                        v1::ReleaseJobsResponse* out) override {
    return Hold(call, ToHold(*in, User(call)), in, out);
  }

  grpc::ServerUnaryReactor* PlanJob(grpc::CallbackServerContext* call, const v1::PlanJobRequest* in,
                                    v1::PlanJobResponse* out) override {
    auto* reactor = call->DefaultReactor();
    broker::PlanJob(context_, call, User(call), in, out, reactor);
    return reactor;
  }

  grpc::ServerWriteReactor<v1::WatchJobsResponse>* WatchJobs(
      grpc::CallbackServerContext*, const v1::WatchJobsRequest* in) override {
    return NewWatchStream(context_, *in);
  }

  grpc::ServerWriteReactor<v1::ReadLogResponse>* ReadLog(grpc::CallbackServerContext*,
                                                         const v1::ReadLogRequest* in) override {
    return NewLogReadStream(context_, *in);
  }

 private:
  std::string User(grpc::CallbackServerContext* call) const {
    return context_.users->UserOf(call->peer());
  }

  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Hold(grpc::CallbackServerContext* call, absl::StatusOr<core::Hold> hold,
                                 const Request* in, Response* out) {
    auto* reactor = call->DefaultReactor();
    if (!hold.ok()) {
      reactor->Finish(rpc::ToGrpc(hold.status()));
      return reactor;
    }
    context_.engine->Hold(*std::move(hold), AnswerWithJobs(reactor, in, out));
    return reactor;
  }

  // Ends the call once the core has said what the jobs of its answer wait for.
  void Explain(std::vector<v1::Job*> jobs, grpc::ServerUnaryReactor* reactor) {
    if (jobs.empty()) return reactor->Finish(grpc::Status::OK);
    std::vector<uint64_t> ids;
    for (const v1::Job* job : jobs) ids.push_back(job->id());
    context_.engine->Explain(std::move(ids),
                             [jobs = std::move(jobs), reactor](std::vector<std::string> reasons) {
                               for (size_t i = 0; i < reasons.size(); ++i) {
                                 if (!reasons[i].empty())
                                   jobs[i]->set_reason(std::move(reasons[i]));
                               }
                               reactor->Finish(grpc::Status::OK);
                             });
  }

  // Shows the jobs of the request once it is on disk.
  template <typename Request, typename Response>
  StatusDone AnswerWithJobs(grpc::ServerUnaryReactor* reactor, const Request* in, Response* out) {
    return [this, reactor, in, out](const absl::Status& done) {
      if (!done.ok()) return reactor->Finish(rpc::ToGrpc(done));
      OnReaders(context_.readers, reactor, [this, reactor, in, out] {
        auto jobs = context_.store->GetJobs(
            absl::MakeConstSpan(in->job_ids().data(), in->job_ids().size()));
        if (!jobs.ok()) return reactor->Finish(rpc::ToGrpc(jobs.status()));
        AddWithinBounds(*std::move(jobs), out);
        reactor->Finish(grpc::Status::OK);
      });
    };
  }

  absl::Status List(const v1::ListJobsRequest& in, v1::ListJobsResponse* out) const {
    const absl::StatusOr<int> page_size = ToPageSize(in.page_size());
    if (!page_size.ok()) return page_size.status();
    const absl::StatusOr<contract::Filter> filter = contract::ParseFilter(in.filter());
    if (!filter.ok()) return filter.status();
    absl::StatusOr<store::JobPage> page =
        context_.store->ListJobs(*filter, *page_size, in.page_token(), in.include_spec());
    if (!page.ok()) return page.status();
    out->mutable_jobs()->Add(std::make_move_iterator(page->jobs.begin()),
                             std::make_move_iterator(page->jobs.end()));
    out->set_next_page_token(std::move(page->next_page_token));
    return absl::OkStatus();
  }

  const Context context_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeJobsService(const Context& context) {
  return std::make_unique<JobsService>(context);
}

}  // namespace muster::broker
