#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "broker/core/changes.h"
#include "broker/store/sqlite/sqlite_store.h"
#include "broker/store/store.h"
#include "muster/v1/job.pb.h"
#include "muster/v1/jobs_service.grpc.pb.h"
#include "rpc/status.h"
#include "tests/bench/tools/tools.h"

namespace muster::bench {
namespace {

// The rows of a job as the broker writes them. The request outlives the result.
void AddRows(uint64_t id, const v1::SubmitJobRequest& request, core::Changes* rows) {
  core::InsertJob insert;
  insert.id = id;
  insert.spec = {std::shared_ptr<void>(), &request.spec()};
  insert.request_id = request.request_id();
  insert.fingerprint = id;
  insert.user = "bench";
  insert.create_time = absl::Now();
  rows->push_back(std::move(insert));
  core::AppendTransition append;
  append.job = id;
  append.transition.set_job_sequence(1);
  append.transition.set_sequence(id);
  append.transition.set_job_state(v1::JOB_STATE_QUEUED);
  append.transition.mutable_time()->set_seconds(absl::ToUnixSeconds(absl::Now()));
  append.transition.set_kind(v1::TRANSITION_KIND_SUBMITTED);
  append.transition.mutable_evidence()->set_source(v1::EVIDENCE_SOURCE_USER);
  append.transition.mutable_evidence()->set_detail("submitted by bench");
  rows->push_back(std::move(append));
}

// Commits the rows of all calls that wait in one transaction, then answers them.
class StoredJobs final : public v1::JobsService::CallbackService {
 public:
  explicit StoredJobs(store::Store* store) : store_(store), thread_([this] { Run(); }) {}
  // No call may follow.
  ~StoredJobs() override {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  grpc::ServerUnaryReactor* SubmitJob(grpc::CallbackServerContext* context,
                                      const v1::SubmitJobRequest* request,
                                      v1::SubmitJobResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    bool is_first = false;
    {
      const std::lock_guard lock(mutex_);
      is_first = calls_.empty();
      calls_.push_back({reactor, request, response});
    }
    if (is_first) changed_.notify_one();
    return reactor;
  }

 private:
  struct Call {
    grpc::ServerUnaryReactor* reactor;
    const v1::SubmitJobRequest* request;
    v1::SubmitJobResponse* response;
  };

  void Run() {
    uint64_t last_id = 0;
    std::vector<Call> calls;
    for (;;) {
      calls.clear();
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return is_over_ || !calls_.empty(); });
        if (calls_.empty()) return;
        calls.swap(calls_);
      }
      core::Changes rows;
      for (const Call& call : calls) {
        call.response->set_job_id(++last_id);
        AddRows(last_id, *call.request, &rows);
      }
      const absl::Status status = store_->Commit(rows);
      for (const Call& call : calls) call.reactor->Finish(rpc::ToGrpc(status));
    }
  }

  store::Store* const store_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Call> calls_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace

absl::Status ServeStored(const Load& load) {
  auto store = store::SqliteStore::Open({.directory = load.dir});
  if (!store.ok()) return store.status();
  if (auto restored = (*store)->Restore(absl::Now()); !restored.ok()) return restored.status();
  StoredJobs jobs(store->get());
  grpc::ServerBuilder builder;
  builder.AddListeningPort(load.address, grpc::InsecureServerCredentials());
  builder.RegisterService(&jobs);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return absl::UnavailableError("the server cannot listen");
  fmt::print("{{\"pid\": {}}}\n", getpid());
  std::fflush(stdout);
  AwaitEndOfInput();
  server->Shutdown();
  return absl::OkStatus();
}

}  // namespace muster::bench
