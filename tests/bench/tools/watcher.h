// A stream that watches all jobs, and what it has seen.
#ifndef MUSTER_TESTS_BENCH_TOOLS_WATCHER_H_
#define MUSTER_TESTS_BENCH_TOOLS_WATCHER_H_

#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/bench/tools/tools.h"

namespace muster::bench {

// Makes a connection of its own.
absl::StatusOr<std::shared_ptr<grpc::Channel>> NewChannel(const Load& load);

// Adds up transitions in their order: equal ones are alike, except for a collision.
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

// Any thread may use it. Watches from its making on. It reads of a message's bytes what it counts
// and makes no objects of them: otherwise hundreds of watchers in one process take most of the
// machine's time, which is the broker's in life.
class Watcher final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  // One that does not read gets the heartbeat at the begin and nothing else.
  Watcher(const std::shared_ptr<grpc::Channel>& channel, bool reads);
  ~Watcher() override;

  // Waits for the heartbeat at the begin.
  absl::Status AwaitBegin(absl::Time give_up) const;
  // The last sequence before what it watches; after AwaitBegin.
  uint64_t begin() const { return begin_; }
  // It has been given all changes up to here.
  uint64_t up_to() const { return up_to_; }
  // Returns the number of changes so far.
  uint64_t changes() const { return changes_; }
  // Returns the transitions among them.
  Steps steps() const;

  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  bool TakeMessage(google::protobuf::io::CodedInputStream* in);
  bool TakeChange(google::protobuf::io::CodedInputStream* in);
  bool TakeHeartbeat(google::protobuf::io::CodedInputStream* in);

  const bool reads_;
  grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
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
