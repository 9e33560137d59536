// The client's end of WatchJobs.
#ifndef MUSTER_TESTS_UNIT_RPC_WATCH_READER_H_
#define MUSTER_TESTS_UNIT_RPC_WATCH_READER_H_

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "tests/unit/rpc/harness.h"

namespace muster::broker {

class WatchReader {
 public:
  WatchReader(TestBroker& broker, const v1::WatchJobsRequest& request)
      : stream_(broker.jobs().WatchJobs(context_.get(), request)) {}
  ~WatchReader() {
    if (finished_) return;
    context_->TryCancel();
    Finish();
  }

  // The next change, whatever heartbeats come between; none: the stream has ended.
  std::optional<v1::JobChange> Next() {
    while (next_ == message_.changes_size()) {
      next_ = 0;
      message_.Clear();
      if (!stream_->Read(&message_)) return std::nullopt;
    }
    return message_.changes(next_++);
  }
  // Returns the next message, a heartbeat too. Not while Next has changes left.
  v1::WatchJobsResponse NextMessage() {
    v1::WatchJobsResponse response;
    EXPECT_TRUE(stream_->Read(&response));
    return response;
  }
  std::vector<v1::JobState> NextStates(int count) {
    std::vector<v1::JobState> states;
    for (int i = 0; i < count; ++i) {
      const auto change = Next();
      if (!change) break;
      states.push_back(change->transition().job_state());
    }
    return states;
  }
  // Reads to the end.
  grpc::Status Finish() {
    finished_ = true;
    v1::WatchJobsResponse ignored;
    while (stream_->Read(&ignored)) {
    }
    return stream_->Finish();
  }

 private:
  std::unique_ptr<grpc::ClientContext> context_ = Call();
  std::unique_ptr<grpc::ClientReader<v1::WatchJobsResponse>> stream_;
  bool finished_ = false;
  v1::WatchJobsResponse message_;
  int next_ = 0;  // of its changes
};

// Watches one job, from the beginning.
inline v1::WatchJobsRequest WatchJob(uint64_t id) {
  v1::WatchJobsRequest request;
  request.add_job_ids(id);
  request.mutable_beginning();
  return request;
}

}  // namespace muster::broker

#endif  // MUSTER_TESTS_UNIT_RPC_WATCH_READER_H_
