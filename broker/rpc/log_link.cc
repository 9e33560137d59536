// The service LogLinkService: carries log bytes from an agent into the archive. A stream is read no
// faster than the archive takes its bytes; gRPC's flow control then holds the agent back.
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "broker/app/worker_pool.h"
#include "broker/engine/engine.h"
#include "broker/logs/archive.h"
#include "broker/rpc/context.h"
#include "broker/rpc/stream_registry.h"
#include "broker/store/store.h"
#include "contract/errors.h"
#include "contract/roles.h"
#include "contract/run_key.h"
#include "contract/text.h"
#include "daemon/log.h"
#include "muster/agent/v1/log_link.grpc.pb.h"
#include "rpc/status.h"
#include "rpc/stream_writer.h"

namespace muster::broker {
namespace {

constexpr uint32_t kProtocolVersion = 1;
// The most bytes of one chunk, as the protocol states.
constexpr size_t kMaxChunkBytes = 64 << 10;
// Chunks of one stream that were read and are not in the archive yet: they keep disk and network
// busy at the same time.
constexpr size_t kMaxQueuedChunks = 8;
// Answers that the agent has not read. An agent with more unread answers is cut off.
constexpr size_t kMaxQueuedAnswers = 4096;
// Runs that one stream remembers; others are looked up again.
constexpr size_t kMaxKnownRuns = 10'000;

class PushStream final
    : public grpc::ServerBidiReactor<agent::v1::PushRequest, agent::v1::PushResponse>,
      public OpenStream,
      public std::enable_shared_from_this<PushStream> {
 public:
  explicit PushStream(const Context& context)
      : context_(context),
        writer_(
            kMaxQueuedAnswers,
            [this](const agent::v1::PushResponse* message) { StartWrite(message); },
            [this](const grpc::Status& status) {
              std::lock_guard lock(mutex_);
              finished_ = true;
              Finish(status);
            }) {}

  void Begin() {
    self_ = shared_from_this();
    if (absl::Status status = context_.streams->Add(self_); !status.ok()) return End(status);
    StartSendInitialMetadata();
    std::lock_guard lock(mutex_);
    ReadIfDue();
  }

  // ---- OpenStream

  void Tick(SteadyClock::time_point) override {}
  void End(const absl::Status& status) override { writer_.Close(rpc::ToGrpc(status)); }

  // ---- reactions

  void OnReadDone(bool ok) override {
    std::unique_lock lock(mutex_);
    reading_ = false;
    if (ok) {
      queue_.push_back(std::move(request_));
      ReadIfDue();
    } else {
      half_closed_ = true;
      reading_ = true;  // never reset
    }
    WorkIfDue(lock);
  }

  void OnWriteDone(bool ok) override { writer_.OnWriteDone(ok); }
  void OnCancel() override { End(absl::CancelledError("the call was canceled")); }

  void OnDone() override {
    context_.streams->Remove(this);
    writer_.AwaitIdle();
    const auto self = std::move(self_);
  }

 private:
  // The facts about a run of this cluster that its logs need.
  struct Known {
    bool accepted = false;
    uint32_t ranks = 0;
    contract::RunKey key;
  };

  void ReadIfDue() {
    if (reading_ || finished_ || queue_.size() >= kMaxQueuedChunks) return;
    reading_ = true;
    StartRead(&request_);
  }

  // Has the pool work off the queue, or ends the stream once the queue is empty and no more comes.
  void WorkIfDue(std::unique_lock<std::mutex>& lock) {
    if (working_) return;
    if (queue_.empty()) {
      if (!half_closed_) return;
      lock.unlock();
      return End(absl::OkStatus());
    }
    working_ = true;
    lock.unlock();
    if (context_.archivers->PostStep([self = shared_from_this()] { self->Work(); })) return;
    End(contract::ShuttingDown());
  }

  // Runs on the archivers' pool, never twice at a time.
  void Work() {
    std::unique_lock lock(mutex_);
    // Takes a bounded number, so that other streams get their turn.
    for (size_t i = 0; i < kMaxQueuedChunks && !queue_.empty() && !finished_; ++i) {
      const agent::v1::PushRequest request = std::move(queue_.front());
      queue_.pop_front();
      ReadIfDue();
      lock.unlock();
      if (absl::Status status = Handle(request); !status.ok()) {
        LogEvent(spdlog::level::warn, "log_stream_closed",
                 {{"cluster", cluster_}, {"why", std::string(ToStd(status.message()))}});
        return End(status);
      }
      lock.lock();
    }
    working_ = false;
    WorkIfDue(lock);
  }

  absl::Status Handle(const agent::v1::PushRequest& request) {
    switch (request.message_case()) {
      case agent::v1::PushRequest::kHello:
        return HandleHello(request.hello());
      case agent::v1::PushRequest::kChunk:
        if (cluster_.empty()) break;
        // Checked before each chunk: a pusher whose agent was replaced or is gone must not write
        // any more.
        if (absl::Status status = CheckConnected(); !status.ok()) return status;
        return HandleChunk(request.chunk());
      case agent::v1::PushRequest::MESSAGE_NOT_SET:
        return contract::BadField("message", "is not set, or is of a later protocol version");
    }
    return contract::BadField("hello", "must be the first message of the stream");
  }

  absl::Status HandleHello(const agent::v1::LogHello& hello) {
    if (!cluster_.empty()) {
      return contract::BadField("hello", "came twice; it is the first message, and only the first");
    }
    if (hello.protocol_version() != kProtocolVersion) {
      return contract::Error(
          absl::StatusCode::kFailedPrecondition, "PROTOCOL_VERSION",
          fmt::format("the agent speaks protocol version {}, this broker {}; update the older one",
                      hello.protocol_version(), kProtocolVersion));
    }
    cluster_ = hello.cluster();
    journal_id_ = hello.journal_id();
    return CheckConnected();
  }

  absl::Status CheckConnected() const {
    if (context_.engine->agents().IsWelcomed(cluster_, journal_id_)) return absl::OkStatus();
    return contract::Error(
        absl::StatusCode::kFailedPrecondition, "NOT_CONNECTED",
        fmt::format("no agent of cluster \"{}\" with journal \"{}\" is connected; connect over "
                    "AgentLink first",
                    cluster_, journal_id_));
  }

  absl::Status HandleChunk(const agent::v1::LogChunk& chunk) {
    if (chunk.data().size() > kMaxChunkBytes) {
      return contract::BadField("chunk.data", fmt::format("has {} bytes; the most is {}",
                                                          chunk.data().size(), kMaxChunkBytes));
    }
    if (!v1::LogStream_IsValid(chunk.stream())) {
      return contract::BadField(
          "chunk.stream", fmt::format("{} is not a stream", static_cast<int>(chunk.stream())));
    }
    const absl::StatusOr<Known> known = Find(chunk.run_key());
    if (!known.ok()) return known.status();

    agent::v1::PushResponse answer;
    answer.set_run_key(chunk.run_key());
    answer.set_rank(chunk.rank());
    answer.set_stream(chunk.stream());
    if (!known->accepted || chunk.rank() >= known->ranks) {
      answer.set_next_offset(chunk.offset() + chunk.data().size());
      answer.set_discarding(true);
      answer.set_complete(chunk.end());
    } else {
      const logs::LogId log{
          known->key.job, known->key.run, chunk.rank(),
          chunk.stream() == v1::LOG_STREAM_STDERR ? v1::LOG_STREAM_STDERR : v1::LOG_STREAM_STDOUT};
      const auto appended =
          context_.archive->Append(log, chunk.offset(), chunk.data(), chunk.end());
      if (!appended.ok()) return appended.status();
      answer.set_next_offset(appended->next_offset);
      answer.set_discarding(appended->discarding);
      answer.set_complete(appended->complete);
    }
    if (writer_.Offer(std::move(answer))) return absl::OkStatus();
    return absl::ResourceExhaustedError("the agent does not read the answers; connect again");
  }

  // Finds out whether the run is one of this cluster's.
  absl::StatusOr<Known> Find(const std::string& run_key) {
    if (const auto found = known_.find(run_key); found != known_.end()) return found->second;
    Known known;
    if (auto key = contract::RunKey::Parse(run_key); key.ok()) {
      const absl::StatusOr<v1::Job> job = context_.store->GetJob(store::Scope::All(), key->job);
      if (!job.ok() && !absl::IsNotFound(job.status())) return job.status();
      if (job.ok() && key->run <= static_cast<uint32_t>(job->runs_size())) {
        const v1::Run& run = job->runs(static_cast<int>(key->run) - 1);
        known.accepted = run.run_key() == run_key && run.cluster() == cluster_;
        known.ranks = contract::RankCount(job->spec());
      }
      known.key = *std::move(key);
    }
    if (known_.size() >= kMaxKnownRuns) known_.clear();
    known_.emplace(run_key, known);
    return known;
  }

  const Context context_;
  std::shared_ptr<PushStream> self_;

  // Members for Work, of which one runs at a time.
  std::string cluster_;
  std::string journal_id_;
  absl::flat_hash_map<std::string, Known> known_;

  rpc::StreamWriter<agent::v1::PushResponse>
      writer_;  // its lock is taken before mutex_, never after

  std::mutex mutex_;
  agent::v1::PushRequest request_;  // being read
  std::deque<agent::v1::PushRequest> queue_;
  bool reading_ = false;
  bool working_ = false;
  bool half_closed_ = false;
  bool finished_ = false;
};

class LogLinkService : public agent::v1::LogLinkService::CallbackService {
 public:
  explicit LogLinkService(const Context& context) : context_(context) {}

  grpc::ServerBidiReactor<agent::v1::PushRequest, agent::v1::PushResponse>* Push(
      grpc::CallbackServerContext*) override {
    auto stream = std::make_shared<PushStream>(context_);
    stream->Begin();
    return stream.get();
  }

 private:
  const Context context_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeLogLinkService(const Context& context) {
  return std::make_unique<LogLinkService>(context);
}

}  // namespace muster::broker
