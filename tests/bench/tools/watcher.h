// A stream that watches all jobs, and what it has seen.
#ifndef MUSTER_TESTS_BENCH_TOOLS_WATCHER_H_
#define MUSTER_TESTS_BENCH_TOOLS_WATCHER_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/jobs_service.grpc.pb.h"
#include "tests/bench/tools/tools.h"

namespace muster::bench {

// A stub with a connection of its own.
absl::StatusOr<std::unique_ptr<v1::JobsService::Stub>> NewJobsStub(const Load& load);

// Transitions in their order: two that are alike have the same ones, but for a collision.
struct Steps {
  uint64_t count = 0;
  uint64_t digest = 0;

  void Add(uint64_t sequence) {
    constexpr uint64_t kPrime = 0x100000001b3;  // of FNV-1
    ++count;
    digest = digest * kPrime + sequence;
  }
  bool operator==(const Steps&) const = default;
};

// Thread-safe. Watches from its making on.
class Watcher final : public grpc::ClientReadReactor<v1::WatchJobsResponse> {
 public:
  // One that does not read gets the heartbeat at the begin and nothing else.
  Watcher(v1::JobsService::Stub* stub, bool reads);
  ~Watcher() override;

  // Waits for the heartbeat at the begin.
  absl::Status AwaitBegin(absl::Time give_up) const;
  // The last sequence before what it watches; after AwaitBegin.
  uint64_t begin() const { return begin_; }
  // It has been given all changes up to here.
  uint64_t up_to() const { return up_to_; }
  // The number of changes so far.
  uint64_t changes() const { return changes_; }
  // The transitions among them.
  Steps steps() const;

  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  const bool reads_;
  grpc::ClientContext context_;
  v1::WatchJobsRequest request_;
  v1::WatchJobsResponse response_;
  std::atomic<bool> has_begun_ = false;
  std::atomic<bool> is_done_ = false;
  std::atomic<uint64_t> begin_ = 0;
  std::atomic<uint64_t> up_to_ = 0;
  std::atomic<uint64_t> changes_ = 0;
  mutable std::mutex mutex_;
  Steps steps_;
};

}  // namespace muster::bench

#endif  // MUSTER_TESTS_BENCH_TOOLS_WATCHER_H_
