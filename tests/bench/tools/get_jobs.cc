// GetJob of one job that waits, while others change.
#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>

#include "absl/time/clock.h"
#include "muster/v1/jobs_service.grpc.pb.h"
#include "rpc/status.h"
#include "tests/bench/tools/connect.h"
#include "tests/bench/tools/histogram.h"
#include "tests/bench/tools/tools.h"
#include "tests/bench/tools/watcher.h"

namespace muster::bench {
namespace {

// Bounds the calls that wait for an answer, too.
constexpr absl::Duration kCallPatience = absl::Seconds(60);

// Calls at a steady rate, whether or not the earlier ones have been answered: one slow answer would
// otherwise keep away the calls that had been slow as well.
class Asker {
 public:
  Asker(v1::JobsService::Stub* stub, const Watcher* watcher, uint64_t job)
      : stub_(stub), watcher_(watcher) {
    request_.set_job_id(job);
  }

  void Ask() {
    auto call = std::make_shared<Call>();
    call->context.set_deadline(absl::ToChronoTime(absl::Now() + kCallPatience));
    call->changes_before = changes_before_;
    changes_before_ = watcher_->changes();
    {
      std::lock_guard lock(mutex_);
      ++in_flight_;
    }
    call->start = absl::Now();
    stub_->async()->GetJob(&call->context, &request_, &call->response,
                           [this, call](const grpc::Status& status) { OnAnswer(*call, status); });
  }

  // Waits for the answers: their times.
  absl::StatusOr<Histogram> Finish() {
    std::unique_lock lock(mutex_);
    answered_.wait(lock, [this] { return in_flight_ == 0; });
    if (!failure_.ok()) return failure_;
    return times_;
  }

 private:
  struct Call {
    grpc::ClientContext context;
    v1::GetJobResponse response;
    absl::Time start;
    uint64_t changes_before = 0;  // when the call before this one began
  };

  void OnAnswer(const Call& call, const grpc::Status& status) {
    const absl::Duration took = absl::Now() - call.start;
    std::lock_guard lock(mutex_);
    if (!status.ok()) {
      failure_ = rpc::FromGrpc(status);
    } else if (call.response.job().state() != v1::JOB_STATE_QUEUED) {
      failure_ = absl::InternalError("the job that is held has left the queue");
    } else if (watcher_->changes() > call.changes_before) {
      times_.Add(took);
    }
    if (--in_flight_ == 0) answered_.notify_all();
  }

  v1::JobsService::Stub* const stub_;
  const Watcher* const watcher_;
  v1::GetJobRequest request_;
  uint64_t changes_before_ = 0;  // Ask's alone
  std::mutex mutex_;
  std::condition_variable answered_;
  int in_flight_ = 0;
  absl::Status failure_;
  Histogram times_;
};

absl::StatusOr<uint64_t> SubmitHeldJob(const Load& load) {
  auto client = MakeClient(load);
  if (!client.ok()) return client.status();
  v1::SubmitJobRequest submit;
  *submit.mutable_spec() = SampleSpec(0);
  submit.set_held(true);
  const auto job = (*client)->SubmitJob(submit);
  if (!job.ok()) return job.status();
  return job->job_id();
}

}  // namespace

absl::Status GetJobs(const Load& load) {
  const auto job = SubmitHeldJob(load);
  if (!job.ok()) return job.status();
  const auto asking = NewChannel(load);
  if (!asking.ok()) return asking.status();
  const auto stub = v1::JobsService::NewStub(*asking);
  const auto watching = NewChannel(load);
  if (!watching.ok()) return watching.status();
  Watcher watcher(*watching, /*reads=*/true);
  if (absl::Status status = watcher.AwaitBegin(absl::Now() + kCallPatience); !status.ok()) {
    return status;
  }
  Asker asker(stub.get(), &watcher, *job);
  fmt::print("{{\"job\": {}}}\n", *job);
  std::fflush(stdout);
  std::atomic<bool> stopping = false;
  std::thread caller([&] {
    for (absl::Time next = absl::Now(); !stopping; next += absl::Seconds(1) / load.rate) {
      absl::SleepFor(next - absl::Now());
      asker.Ask();
    }
  });
  AwaitEndOfInput();
  stopping = true;
  caller.join();
  absl::StatusOr<Histogram> times = asker.Finish();
  if (!times.ok()) return times.status();
  if (times->size() == 0) return absl::FailedPreconditionError("no job changed meanwhile");
  fmt::print("{{\"calls\": {}, \"p50_ms\": {:.3f}, \"p99_ms\": {:.3f}}}\n", times->size(),
             absl::ToDoubleMilliseconds(times->Percentile(0.5)),
             absl::ToDoubleMilliseconds(times->Percentile(0.99)));
  return absl::OkStatus();
}

}  // namespace muster::bench
