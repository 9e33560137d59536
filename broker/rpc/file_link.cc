// Implements FileLinkService: takes an agent's stream with files of a run, for the client that
// waits for them.
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "broker/app/agent_streams.h"
#include "broker/app/fetches.h"
#include "broker/app/join_fetch.h"
#include "broker/engine/engine.h"
#include "broker/rpc/caller.h"
#include "broker/rpc/context.h"
#include "broker/rpc/gate.h"
#include "broker/rpc/stream_registry.h"
#include "contract/errors.h"
#include "contract/file_tree.h"
#include "muster/agent/v1/file_link.grpc.pb.h"
#include "rpc/status.h"
#include "rpc/status_message.h"
#include "sync/mutex.h"

namespace muster::broker {
namespace {

// An agent that does not name the fetch that it sends for is cut off after this time.
constexpr std::chrono::seconds kHelloPatience{10};

absl::Status AgentWentAway() {
  return AgentFailed(absl::UnavailableError("the agent went away while it sent; try again"));
}

class FeedStream final : public grpc::ServerReadReactor<agent::v1::SendFilesRequest>,
                         public OpenStream,
                         public FileFeed,
                         public std::enable_shared_from_this<FeedStream> {
 public:
  FeedStream(const Context& context, const grpc::CallbackServerContext& call)
      : context_(context), identity_(context.app.cluster_access, *context.users, call) {}

  void Begin(const grpc::CallbackServerContext& call) {
    self_ = shared_from_this();
    absl::Status status = CheckAgentCall(call);
    if (status.ok()) status = identity_.Check();
    if (status.ok()) status = context_.streams->Add(self_);
    if (!status.ok()) return Close(status);
    StartSendInitialMetadata();
    ReadOn();
  }

  // ---- FileFeed

  void ReadOn() override {
    const MutexLock lock(mutex_);
    if (!ended_) StartRead(&request_);
  }

  void Close(const absl::Status& status) override {
    const MutexLock lock(mutex_);
    if (!std::exchange(ended_, true)) Finish(rpc::ToGrpc(status));
  }

  // ---- OpenStream

  void Tick(SteadyClock::time_point now) override {
    {
      const MutexLock lock(mutex_);
      if (is_greeted_ || ended_ || now - opened_ < kHelloPatience) return;
    }
    Close(absl::DeadlineExceededError("the agent sent no hello"));
  }

  void End(const absl::Status& status) override { Leave(status); }

  // ---- reactions

  void OnReadDone(bool ok) override {
    if (!ok) return Leave(AgentWentAway());
    if (absl::Status status = Handle(); !status.ok()) Leave(status);
  }

  void OnCancel() override { Leave(AgentWentAway()); }

  void OnDone() override {
    context_.streams->Remove(this);
    const auto self = std::move(self_);
  }

 private:
  // Ends both sides.
  void Leave(const absl::Status& status) {
    std::shared_ptr<FileTaker> taker;
    {
      const MutexLock lock(mutex_);
      taker = taker_;
    }
    Close(status);
    if (taker != nullptr) taker->EndWith(status);
  }

  // Handles the message that was read. One reaction runs at a time, so the taker is read without
  // the lock.
  absl::Status Handle() {
    if (request_.message_case() == agent::v1::SendFilesRequest::kHello)
      return Greet(request_.hello());
    if (taker_ == nullptr) return MustBeFirst();
    v1::FetchFilesResponse piece;
    switch (request_.message_case()) {
      case agent::v1::SendFilesRequest::kEntry:
        *piece.mutable_entry() = std::move(*request_.mutable_entry());
        break;
      case agent::v1::SendFilesRequest::kChunk:
        if (request_.chunk().size() > contract::kMaxFileChunkBytes) {
          return contract::BadField(
              "chunk", fmt::format("has {} bytes; the most is {}", request_.chunk().size(),
                                   contract::kMaxFileChunkBytes));
        }
        piece.set_chunk(std::move(*request_.mutable_chunk()));
        break;
      case agent::v1::SendFilesRequest::kLeftOut:
        *piece.mutable_left_out() = std::move(*request_.mutable_left_out());
        break;
      case agent::v1::SendFilesRequest::kEnd:
        // This comes first, because the taker closes a feed that it still has.
        Close(absl::OkStatus());
        taker_->EndWith(AgentFailed(rpc::FromMessage(request_.end())));
        return absl::OkStatus();
      default:
        return UnknownMessage();
    }
    taker_->Take(std::move(piece));
    return absl::OkStatus();
  }

  absl::Status Greet(const agent::v1::SendFilesHello& hello) {
    if (taker_ != nullptr) return CameTwice();
    if (absl::Status status = identity_.CheckSpeaksFor(hello.cluster()); !status.ok())
      return status;
    {
      const MutexLock lock(mutex_);
      is_greeted_ = true;
    }
    absl::StatusOr<std::shared_ptr<FileTaker>> taker =
        JoinFetch(context_.engine->agents(), *context_.fetches, hello, shared_from_this());
    if (!taker.ok()) return taker.status();
    {
      const MutexLock lock(mutex_);
      taker_ = *std::move(taker);
    }
    ReadOn();
    return absl::OkStatus();
  }

  const Context context_;
  const AgentIdentity identity_;
  const SteadyClock::time_point opened_ = SteadyClock::now();
  std::shared_ptr<FeedStream> self_;
  agent::v1::SendFilesRequest request_;  // being read

  Mutex mutex_;
  std::shared_ptr<FileTaker> taker_;  // written only by the reading reaction
  bool is_greeted_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

class FileLinkService : public agent::v1::FileLinkService::CallbackService {
 public:
  explicit FileLinkService(const Context& context) : context_(context) {}

  grpc::ServerReadReactor<agent::v1::SendFilesRequest>* SendFiles(
      grpc::CallbackServerContext* call, agent::v1::SendFilesResponse*) override {
    auto stream = std::make_shared<FeedStream>(context_, *call);
    FeedStream* reactor = stream.get();
    stream->Begin(*call);
    return reactor;
  }

 private:
  const Context context_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeFileLinkService(const Context& context) {
  return std::make_unique<FileLinkService>(context);
}

}  // namespace muster::broker
