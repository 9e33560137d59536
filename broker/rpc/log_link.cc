// Implements LogLinkService: carries log bytes from an agent into the archive. A stream is read no
// faster than the archive takes its bytes; gRPC's flow control then holds the agent back.
#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "broker/app/store_log.h"
#include "broker/app/worker_pool.h"
#include "broker/rpc/caller.h"
#include "broker/rpc/context.h"
#include "broker/rpc/gate.h"
#include "broker/rpc/stream_registry.h"
#include "contract/errors.h"
#include "contract/text.h"
#include "daemon/log.h"
#include "muster/agent/v1/log_link.grpc.pb.h"
#include "rpc/status.h"
#include "rpc/stream_writer.h"
#include "sync/mutex.h"

namespace muster::broker {
namespace {

// Chunks of one stream that were read and are not in the archive yet: they keep disk and network
// busy at the same time.
constexpr size_t kMaxQueuedChunks = 8;
// Answers that the agent has not read. An agent with more unread answers is cut off.
constexpr size_t kMaxQueuedAnswers = 4096;

class PushStream final
    : public grpc::ServerBidiReactor<agent::v1::PushRequest, agent::v1::PushResponse>,
      public OpenStream,
      public std::enable_shared_from_this<PushStream> {
 public:
  PushStream(const Context& context, const grpc::CallbackServerContext& call)
      : context_(context),
        identity_(context.app.cluster_access, *context.users, call),
        store_(context.app),
        writer_(
            kMaxQueuedAnswers,
            [this](const agent::v1::PushResponse* message) { StartWrite(message); },
            [this](const grpc::Status& status) {
              const MutexLock lock(mutex_);
              finished_ = true;
              Finish(status);
            }) {}

  void Begin(const grpc::CallbackServerContext& call) {
    self_ = shared_from_this();
    absl::Status status = CheckAgentCall(call);
    if (status.ok()) status = identity_.Check();
    if (status.ok()) status = context_.streams->Add(self_);
    if (!status.ok()) return End(status);
    StartSendInitialMetadata();
    const MutexLock lock(mutex_);
    ReadIfDue();
  }

  // ---- OpenStream

  void Tick(SteadyClock::time_point) override {
    if (absl::Status status = identity_.Check(); !status.ok()) End(status);
  }
  void End(const absl::Status& status) override { writer_.Close(rpc::ToGrpc(status)); }

  // ---- reactions

  void OnReadDone(bool ok) override {
    MutexLock lock(mutex_);
    reading_ = false;
    if (ok) {
      queue_.push_back(std::move(request_));
      ReadIfDue();
    } else {
      half_closed_ = true;
      reading_ = true;  // never reset
    }
    const Next next = TakeNext();
    lock.Unlock();
    Do(next);
  }

  void OnWriteDone(bool ok) override { writer_.OnWriteDone(ok); }
  void OnCancel() override { End(absl::CancelledError("the call was canceled")); }

  void OnDone() override {
    context_.streams->Remove(this);
    writer_.AwaitIdle();
    const auto self = std::move(self_);
  }

 private:
  void ReadIfDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (reading_ || finished_ || queue_.size() >= kMaxQueuedChunks) return;
    reading_ = true;
    StartRead(&request_);
  }

  enum class Next { kNothing, kWork, kEnd };

  // The queue is to be worked off, or the stream ends once it is empty and no more comes.
  Next TakeNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (working_) return Next::kNothing;
    if (queue_.empty()) return half_closed_ ? Next::kEnd : Next::kNothing;
    working_ = true;
    return Next::kWork;
  }

  // Does the next step; the caller does not hold the lock.
  void Do(Next next) {
    if (next == Next::kNothing) return;
    if (next == Next::kEnd) return End(absl::OkStatus());
    if (context_.archivers->PostStep([self = shared_from_this()] { self->Work(); })) return;
    End(contract::ShuttingDown());
  }

  // Runs on the archivers' pool, never twice at a time.
  void Work() {
    MutexLock lock(mutex_);
    // Takes a bounded number, so that other streams get their turn.
    for (size_t i = 0; i < kMaxQueuedChunks && !queue_.empty() && !finished_; ++i) {
      const agent::v1::PushRequest request = std::move(queue_.front());
      queue_.pop_front();
      ReadIfDue();
      lock.Unlock();
      if (absl::Status status = Handle(request); !status.ok()) {
        LogEvent(spdlog::level::warn, "log_stream_closed",
                 {{"cluster", store_.cluster()}, {"why", std::string(ToStd(status.message()))}});
        return End(status);
      }
      lock.Lock();
    }
    working_ = false;
    const Next next = TakeNext();
    lock.Unlock();
    Do(next);
  }

  absl::Status Handle(const agent::v1::PushRequest& request) {
    if (request.has_hello()) {
      if (absl::Status status = identity_.CheckSpeaksFor(request.hello().cluster()); !status.ok())
        return status;
    }
    absl::StatusOr<std::optional<agent::v1::PushResponse>> answer = store_.Take(request);
    if (!answer.ok()) return answer.status();
    if (!answer->has_value() || writer_.Offer(**std::move(answer))) return absl::OkStatus();
    return absl::ResourceExhaustedError("the agent does not read the answers; connect again");
  }

  const Context context_;
  const AgentIdentity identity_;
  std::shared_ptr<PushStream> self_;

  StoreLog store_;  // for Work, which runs once at a time

  rpc::StreamWriter<agent::v1::PushResponse>
      writer_;  // its lock is taken before mutex_, never after

  Mutex mutex_;
  agent::v1::PushRequest request_;  // being read
  std::deque<agent::v1::PushRequest> queue_ ABSL_GUARDED_BY(mutex_);
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool working_ ABSL_GUARDED_BY(mutex_) = false;
  bool half_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

class LogLinkService : public agent::v1::LogLinkService::CallbackService {
 public:
  explicit LogLinkService(const Context& context) : context_(context) {}

  grpc::ServerBidiReactor<agent::v1::PushRequest, agent::v1::PushResponse>* Push(
      grpc::CallbackServerContext* call) override {
    auto stream = std::make_shared<PushStream>(context_, *call);
    stream->Begin(*call);
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
