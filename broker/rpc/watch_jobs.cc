#include "broker/rpc/watch_jobs.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "broker/rpc/pull_stream.h"
#include "broker/rpc/requests.h"
#include "broker/store/store.h"
#include "contract/states.h"

namespace muster::broker {
namespace {

// Transitions read and held by one stream at a time.
constexpr int kPage = 200;

class WatchStream final : public PullStream<v1::WatchJobsResponse> {
 public:
  WatchStream(const Context& context, Watch watch)
      : PullStream(context), watch_(std::move(watch)) {}

  // Wakes may come from here on; call before the first read, so that none is missed.
  void Hook() { context_.watches->Add(shared_from_this(), watch_.jobs); }

 private:
  Result Step() override {
    Result result;
    absl::Status status = Read(&result);
    if (!status.ok()) result.final_status = std::move(status);
    return result;
  }

  absl::Status Read(Result* result) {
    if (watch_.after_sequence < 0) {
      const absl::StatusOr<uint64_t> last = context_.store->LastSequence();
      if (!last.ok()) return last.status();
      watch_.after_sequence = static_cast<int64_t>(*last);
      // Whoever loses the stream before its first step must know where "now" was.
      result->messages.push_back(SignOfLife());
    }
    // Asked before the transitions are: if all have ended by now, the transitions below are the
    // last ones.
    bool all_ended = false;
    if (!watch_.jobs.empty() && (watch_.until_terminal || !checked_)) {
      const auto jobs = context_.store->GetJobs(watch_.jobs);
      if (!jobs.ok()) return jobs.status();
      checked_ = true;
      all_ended = std::all_of(jobs->begin(), jobs->end(),
                              [](const v1::Job& job) { return contract::IsTerminal(job.state()); });
    }
    auto steps = context_.store->ListTransitions(
        watch_.jobs, static_cast<uint64_t>(watch_.after_sequence), kPage);
    if (!steps.ok()) return steps.status();
    result->more = steps->size() == kPage;
    if (!steps->empty()) {
      watch_.after_sequence = static_cast<int64_t>(steps->back().transition.sequence());
      if (absl::Status status = Translate(*std::move(steps), result); !status.ok()) return status;
    }
    if (watch_.until_terminal && all_ended && !result->more) {
      result->final_status = absl::OkStatus();
    }
    return absl::OkStatus();
  }

  absl::Status Translate(std::vector<store::JobTransition> steps, Result* result) {
    std::vector<uint64_t> ids;
    for (const auto& step : steps) ids.push_back(step.job);
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    auto jobs = context_.store->GetJobs(ids);
    if (!jobs.ok()) return jobs.status();
    absl::flat_hash_map<uint64_t, const v1::Job*> by_id;
    for (const v1::Job& job : *jobs) by_id.emplace(job.id(), &job);
    for (auto& step : steps) {
      const v1::Job* job = by_id.at(step.job);
      if (!watch_.filter.Matches(*job)) continue;
      v1::WatchJobsResponse message;
      message.set_job_id(step.job);
      *message.mutable_transition() = std::move(step.transition);
      *message.mutable_job() = *job;
      result->messages.push_back(std::move(message));
    }
    return absl::OkStatus();
  }

  v1::WatchJobsResponse SignOfLife() const {
    v1::WatchJobsResponse message;
    // Below 0: not even the first step has been made.
    if (watch_.after_sequence >= 0) {
      message.set_sequence(static_cast<uint64_t>(watch_.after_sequence));
    }
    return message;
  }

  std::optional<v1::WatchJobsResponse> KeepAlive() override { return SignOfLife(); }

  void Unhook() override { context_.watches->Remove(this, watch_.jobs); }

  Watch watch_;           // a Step changes after_sequence; nothing else changes
  bool checked_ = false;  // the jobs exist
};

}  // namespace

grpc::ServerWriteReactor<v1::WatchJobsResponse>* NewWatchStream(
    const Context& context, const v1::WatchJobsRequest& request) {
  absl::StatusOr<Watch> watch = ToWatch(request);
  const absl::Status valid = watch.status();
  auto stream = std::make_shared<WatchStream>(context, watch.ok() ? *std::move(watch) : Watch{});
  WatchStream* reactor = stream.get();
  if (valid.ok()) stream->Hook();
  stream->Begin(valid);
  return reactor;
}

}  // namespace muster::broker
