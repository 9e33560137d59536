// Sets up a whole broker in this process, on a memory store and a Unix socket of its own, and the
// other ends of its streams: clients through real gRPC, agents that do what the test says.
#ifndef MUSTER_TESTS_UNIT_RPC_HARNESS_H_
#define MUSTER_TESTS_UNIT_RPC_HARNESS_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "broker/files/file_store.h"
#include "broker/rpc/broker.h"
#include "broker/store/memory/memory_store.h"
#include "muster/agent/v1/agent_link.grpc.pb.h"
#include "muster/agent/v1/log_link.grpc.pb.h"
#include "muster/v1/clusters_service.grpc.pb.h"
#include "muster/v1/files_service.grpc.pb.h"
#include "muster/v1/jobs_service.grpc.pb.h"

namespace muster::broker {

inline constexpr char kInstance[] = "k7m2";

// A memory store whose commits wait for the test, if it says so.
class GatedStore : public store::MemoryStore {
 public:
  GatedStore() : MemoryStore(kInstance) {}

  absl::Status Commit(absl::Span<const core::Change> changes) override;
  absl::StatusOr<std::vector<v1::Job>> GetJobs(const store::Scope& scope,
                                               absl::Span<const uint64_t> ids) const override;
  void CloseGate();
  void OpenGate();
  // Makes GetJobs fail from now on.
  void FailReadsOfMany() { reads_of_many_fail_ = true; }
  // Waits until a commit stands at the closed gate.
  void AwaitCommit();
  // Waits until a commit has passed the gate.
  void AwaitFirstCommit();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  int waiting_ = 0;
  bool passed_ = false;
  std::atomic<bool> reads_of_many_fail_ = false;
};

// Returns the context of a call, long enough for the slowest machine, short enough to fail a test
// that hangs.
std::unique_ptr<grpc::ClientContext> Call(int seconds = 60);

// A store of files as a broker takes it.
std::unique_ptr<files::FileStore> OpenFiles(const std::filesystem::path& directory,
                                            std::function<absl::Time()> now = absl::Now);

v1::JobSpec TrueSpec();
v1::SubmitJobRequest SubmitTrue(const std::string& request_id = "");

class TestBroker {
 public:
  // The broker has committed its epoch: the next commit is the test's.
  explicit TestBroker(std::function<void(BrokerOptions&)> adjust = nullptr);
  ~TestBroker();

  std::shared_ptr<grpc::Channel> NewChannel() const;
  v1::JobsService::Stub& jobs() { return *jobs_; }
  v1::ClustersService::Stub& clusters() { return *clusters_; }
  v1::FilesService::Stub& files() { return *files_; }
  GatedStore& store() { return *store_; }
  Broker& broker() { return *broker_; }
  const std::filesystem::path& directory() const { return directory_; }

  // Moves the clock of the store of files.
  void PassTimeOfFiles(absl::Duration time) { files_ahead_s_ += absl::ToInt64Seconds(time); }

  // The status of a store failure, once there was one.
  absl::Status AwaitFailure();

  // Submits and expects success.
  uint64_t Submit(const v1::SubmitJobRequest& request = SubmitTrue());
  v1::Job Get(uint64_t id);

 private:
  std::filesystem::path directory_;
  std::atomic<int64_t> files_ahead_s_ = 0;
  GatedStore* store_ = nullptr;
  std::unique_ptr<Broker> broker_;
  std::unique_ptr<v1::JobsService::Stub> jobs_;
  std::unique_ptr<v1::ClustersService::Stub> clusters_;
  std::unique_ptr<v1::FilesService::Stub> files_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<absl::Status> failure_;
};

// The other end of AgentLink.
class FakeAgent {
 public:
  explicit FakeAgent(TestBroker& broker, const std::string& cluster = "gpu");
  ~FakeAgent();

  // Sends the hello, after `adjust`, and reads the welcome. False: the broker ended the stream, see
  // Finish.
  bool Connect(std::function<void(agent::v1::AgentHello&)> adjust = nullptr);
  // Returns the next message; nullopt if the stream has ended.
  std::optional<agent::v1::ConnectResponse> Read();
  // Reads until `count` assignments have come.
  std::vector<agent::v1::Assignment> ReadAssignments(int count);
  // Reads until this event, or a later one, is acknowledged.
  void AwaitAck(uint64_t sequence);
  // Any thread may use it.
  bool Write(const agent::v1::ConnectRequest& request) {
    // The broker may act upon a message before the call that wrote it returns.
    const std::lock_guard lock(write_mutex_);
    return stream_->Write(request);
  }
  // Sends one event with the next number and returns the number. `ended_ago`: by the node's clock,
  // if the event is the end. `nodes`: rank 0 first.
  uint64_t Report(const std::string& run_key, v1::RunState state, bool logs_complete = false,
                  absl::Duration ended_ago = absl::ZeroDuration(),
                  const std::vector<std::string>& nodes = {});
  // Takes the run through to SUCCEEDED with its logs complete, acknowledged.
  void Succeed(const std::string& run_key);
  // Ends the stream from this side, or reads what ended it.
  grpc::Status Finish();
  void Drop() { context_->TryCancel(); }

  const agent::v1::BrokerWelcome& welcome() const { return welcome_; }
  std::string journal_id = "journal-1";
  uint64_t next_sequence = 1;

 private:
  std::string cluster_;
  std::unique_ptr<agent::v1::AgentLinkService::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_ = Call();
  std::unique_ptr<grpc::ClientReaderWriter<agent::v1::ConnectRequest, agent::v1::ConnectResponse>>
      stream_;
  std::mutex write_mutex_;
  agent::v1::BrokerWelcome welcome_;
  bool finished_ = false;
};

}  // namespace muster::broker

#endif  // MUSTER_TESTS_UNIT_RPC_HARNESS_H_
