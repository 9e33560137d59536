// Many watchers of all jobs, and what they do to others.
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "clients/cpp/address.h"
#include "muster/v1/jobs_service.grpc.pb.h"
#include "rpc/status.h"
#include "tests/bench/tools/connect.h"
#include "tests/bench/tools/histogram.h"
#include "tests/bench/tools/tools.h"

namespace muster::bench {
namespace {

// Streams on one connection; gRPC's default limit is 100.
constexpr int kStreamsPerChannel = 50;
constexpr absl::Duration kBeginPatience = absl::Seconds(60);
// Without any news for so long, a watcher has got all that there was.
constexpr absl::Duration kQuiet = absl::Seconds(5);
constexpr absl::Duration kLook = absl::Milliseconds(100);

// The changes that one watcher has seen.
struct Seen {
  uint64_t changes = 0;
  uint64_t sequences = 0;  // their sum
  uint64_t last = 0;
  bool in_order = true;

  auto operator<=>(const Seen&) const = default;
};

class Watcher final : public grpc::ClientReadReactor<v1::WatchJobsResponse> {
 public:
  Watcher(v1::JobsService::Stub* stub, bool reads, std::atomic<uint64_t>* total)
      : reads_(reads), total_(*total) {
    stub->async()->WatchJobs(&context_, &request_, this);
    StartRead(&response_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    has_begun_ = true;
    if (response_.has_change()) Note(response_.change());
    // One who never reads has had the heartbeat at the begin.
    if (reads_) StartRead(&response_);
  }
  void OnDone(const grpc::Status&) override { is_done_ = true; }

  bool has_begun() const { return has_begun_; }
  Seen seen() const {
    std::lock_guard lock(mutex_);
    return seen_;
  }
  void Finish() {
    context_.TryCancel();
    while (!is_done_) absl::SleepFor(absl::Milliseconds(1));
  }

 private:
  void Note(const v1::JobChange& change) {
    std::lock_guard lock(mutex_);
    seen_.in_order = seen_.in_order && change.sequence() > seen_.last;
    seen_.last = change.sequence();
    seen_.sequences += change.sequence();
    ++seen_.changes;
    ++total_;
  }

  const bool reads_;
  std::atomic<uint64_t>& total_;
  grpc::ClientContext context_;
  v1::WatchJobsRequest request_;
  v1::WatchJobsResponse response_;
  std::atomic<bool> has_begun_ = false;
  std::atomic<bool> is_done_ = false;
  mutable std::mutex mutex_;
  Seen seen_;
};

struct Watchers {
  std::vector<std::unique_ptr<v1::JobsService::Stub>> stubs;
  std::vector<std::unique_ptr<Watcher>> all;
  std::atomic<uint64_t> total = 0;

  ~Watchers() {
    for (const auto& watcher : all) watcher->Finish();
  }
};

absl::Status Begin(const Load& load, bool reads, Watchers* watchers) {
  const auto address = client::ParseAddress(load.address);
  if (!address.ok()) return address.status();
  for (int i = 0; i < load.watchers; ++i) {
    if (i % kStreamsPerChannel == 0) {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      watchers->stubs.push_back(v1::JobsService::NewStub(grpc::CreateCustomChannel(
          address->target, grpc::InsecureChannelCredentials(), arguments)));
    }
    watchers->all.push_back(
        std::make_unique<Watcher>(watchers->stubs.back().get(), reads, &watchers->total));
  }
  const absl::Time give_up = absl::Now() + kBeginPatience;
  for (const auto& watcher : watchers->all) {
    while (!watcher->has_begun()) {
      if (absl::Now() > give_up) return absl::UnavailableError("a watch did not begin");
      absl::SleepFor(absl::Milliseconds(1));
    }
  }
  fmt::print("{{\"watchers\": {}}}\n", watchers->all.size());
  std::fflush(stdout);
  return absl::OkStatus();
}

void AwaitQuiet(const std::atomic<uint64_t>& total) {
  uint64_t before = 0;
  absl::Time since = absl::Now();
  while (absl::Now() - since < kQuiet) {
    if (const uint64_t now = total; now != before) {
      before = now;
      since = absl::Now();
    }
    absl::SleepFor(kLook);
  }
}

}  // namespace

absl::Status WatchChanges(const Load& load) {
  Watchers watchers;
  if (absl::Status status = Begin(load, /*reads=*/true, &watchers); !status.ok()) return status;
  AwaitEndOfInput();
  AwaitQuiet(watchers.total);
  std::map<Seen, int> alike;
  for (const auto& watcher : watchers.all) ++alike[watcher->seen()];
  int most = 0;
  Seen common;
  for (const auto& [seen, count] : alike) {
    if (count > most && seen.in_order) {
      most = count;
      common = seen;
    }
  }
  fmt::print("{{\"alike\": {}, \"changes\": {}}}\n", most, common.changes);
  return absl::OkStatus();
}

absl::Status WatchWithoutReading(const Load& load) {
  Watchers watchers;
  if (absl::Status status = Begin(load, /*reads=*/false, &watchers); !status.ok()) return status;
  AwaitEndOfInput();
  fmt::print("{{}}\n");
  return absl::OkStatus();
}

absl::Status GetJobs(const Load& load) {
  auto client = MakeClient(load);
  if (!client.ok()) return client.status();
  v1::SubmitJobRequest submit;
  *submit.mutable_spec() = SampleSpec(0);
  const auto job = (*client)->SubmitJob(submit);
  if (!job.ok()) return job.status();
  fmt::print("{{\"job\": {}}}\n", job->job_id());
  std::fflush(stdout);
  std::atomic<bool> stopping = false;
  Histogram times;
  absl::Status failure;
  std::thread caller([&] {
    v1::GetJobRequest request;
    request.set_job_id(job->job_id());
    while (!stopping && failure.ok()) {
      const absl::Time begin = absl::Now();
      failure = (*client)->GetJob(request).status();
      times.Add(absl::Now() - begin);
      absl::SleepFor(absl::Seconds(1) / load.rate);
    }
  });
  AwaitEndOfInput();
  stopping = true;
  caller.join();
  if (!failure.ok()) return failure;
  fmt::print("{{\"p50_ms\": {:.3f}, \"p99_ms\": {:.3f}}}\n",
             absl::ToDoubleMilliseconds(times.Percentile(0.5)),
             absl::ToDoubleMilliseconds(times.Percentile(0.99)));
  return absl::OkStatus();
}

}  // namespace muster::bench
