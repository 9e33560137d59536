// Implements AgentLinkService: carries messages between an agent's stream and the engine. The core
// knows their meaning.
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "broker/engine/engine.h"
#include "broker/rpc/caller.h"
#include "broker/rpc/context.h"
#include "broker/rpc/gate.h"
#include "broker/rpc/pending_questions.h"
#include "broker/rpc/stream_registry.h"
#include "contract/errors.h"
#include "contract/text.h"
#include "daemon/log.h"
#include "muster/agent/v1/agent_link.grpc.pb.h"
#include "rpc/status.h"
#include "rpc/stream_writer.h"
#include "sync/mutex.h"

namespace muster::broker {
namespace {

// At most this many messages from one agent wait for the core; beyond that, its stream is not read
// further.
constexpr int kMaxUnhandled = 32;
// Messages to one agent that it has not read. A resync of 1,000,000 runs makes 1,000 messages of
// the usual size.
constexpr size_t kMaxQueuedMessages = 4096;
// These messages have at most this many bytes, some 80 of the largest ones that a resync makes. The
// connection to an agent that does not keep up is closed once it has read these, or after
// kPatience; the resync of its next stream has the rest.
constexpr size_t kMaxQueuedBytes = 256 << 20;
// A peer that does not say hello, or does not let its stream end, is cut off after this time.
constexpr std::chrono::seconds kPatience{10};
// Agents wait this long at a shutdown before they reconnect, about as long as a restart takes.
constexpr int kReconnectSeconds = 1;

class AgentStream final
    : public grpc::ServerBidiReactor<agent::v1::ConnectRequest, agent::v1::ConnectResponse>,
      public OpenStream,
      public AgentPeer,
      public std::enable_shared_from_this<AgentStream> {
 public:
  AgentStream(const Context& context, grpc::CallbackServerContext* call)
      : context_(context),
        call_(call),
        identity_(context.app.cluster_access, *context.users, *call),
        writer_(
            kMaxQueuedMessages,
            [this](const agent::v1::ConnectResponse* message) { StartWrite(message); },
            [this](const grpc::Status& status) {
              const MutexLock lock(mutex_);
              finished_ = true;
              Finish(status);
            },
            kMaxQueuedBytes) {}

  void Begin() {
    self_ = shared_from_this();
    absl::Status status = CheckAgentCall(*call_);
    if (status.ok()) status = identity_.Check();
    if (status.ok()) status = context_.streams->Add(self_);
    if (!status.ok()) return Close(status);
    StartSendInitialMetadata();
    const MutexLock lock(mutex_);
    ReadIfDue();
  }

  // ---- AgentPeer

  bool Send(agent::v1::ConnectResponse message) override {
    if (message.has_welcome()) {
      const MutexLock lock(mutex_);
      if (closing_since_) return true;
      LogConnected(message.welcome().agent_epoch());
    }
    if (!message.has_welcome()) return writer_.Offer(std::move(message));
    // The agent may read it before Offer returns, and somebody who hears of it ask the agent: that
    // question waits here for the lock.
    const MutexLock lock(welcome_mutex_);
    is_welcomed_ = writer_.Offer(std::move(message));
    return is_welcomed_;
  }

  void Close(const absl::Status& status) override {
    {
      const MutexLock lock(mutex_);
      if (closing_since_) return;
      closing_since_ = SteadyClock::now();
      if (!status.ok()) {
        LogEvent(spdlog::level::warn, "agent_closed",
                 {{"cluster", cluster_}, {"why", std::string(ToStd(status.message()))}});
      }
    }
    questions_.End();
    writer_.Close(rpc::ToGrpc(status));
  }

  void Handled() override {
    const MutexLock lock(mutex_);
    --unhandled_;
    ReadIfDue();
  }

  void Ask(agent::v1::AgentQuestion question, SteadyClock::time_point deadline,
           Answered answered) override {
    const std::optional<uint64_t> id = questions_.Add(deadline, std::move(answered));
    if (!id) return;
    if (!IsWelcomed()) return questions_.Fail(*id, NotNow("is not connected yet"));
    agent::v1::ConnectResponse message;
    *message.mutable_question() = std::move(question);
    message.mutable_question()->set_id(*id);
    if (!writer_.Offer(std::move(message))) questions_.Fail(*id, NotNow("does not keep up"));
  }

  // ---- OpenStream

  void Tick(SteadyClock::time_point now) override {
    bool silent = false;
    bool stuck = false;
    {
      const MutexLock lock(mutex_);
      if (finished_) return;
      silent = session_ == 0 && now - opened_ > kPatience;
      stuck = closing_since_ && now - *closing_since_ > kPatience;
      // The lock is held, so that the call is still there.
      if (stuck) call_->TryCancel();
    }
    questions_.Expire(now);
    if (absl::Status status = identity_.Check(); !status.ok()) return Close(status);
    if (silent && !stuck) Close(absl::DeadlineExceededError("the agent sent no hello"));
  }

  void End(const absl::Status& status) override {
    agent::v1::ConnectResponse message;
    message.mutable_reconnect()->mutable_after()->set_seconds(kReconnectSeconds);
    writer_.Offer(std::move(message));
    Close(status);
  }

  // ---- reactions

  void OnReadDone(bool ok) override {
    if (!ok) {
      Leave();
      return Close(absl::OkStatus());
    }
    if (absl::Status status = Receive(); !status.ok()) return Close(status);
    const MutexLock lock(mutex_);
    reading_ = false;
    ReadIfDue();
  }

  void OnWriteDone(bool ok) override { writer_.OnWriteDone(ok); }

  void OnCancel() override { Close(absl::OkStatus()); }

  void OnDone() override {
    Leave();
    questions_.End();
    context_.streams->Remove(this);
    writer_.AwaitIdle();
    const auto self = std::move(self_);
  }

 private:
  // Hands the message that was read to the engine.
  absl::Status Receive() {
    {
      const MutexLock lock(mutex_);
      ++unhandled_;
    }
    switch (request_.message_case()) {
      case agent::v1::ConnectRequest::kHello:
        return ReceiveHello();
      case agent::v1::ConnectRequest::kEvents:
        if (session_ == 0) break;
        context_.engine->Report(session_, std::move(*request_.mutable_events()), self_);
        return absl::OkStatus();
      case agent::v1::ConnectRequest::kHeartbeat:
        if (session_ == 0) break;
        context_.engine->Beat(session_, std::move(*request_.mutable_heartbeat()), self_);
        return absl::OkStatus();
      case agent::v1::ConnectRequest::kAnswer:
        if (session_ == 0) break;
        questions_.Answer(std::move(*request_.mutable_answer()));
        Handled();  // the core has nothing to do with the message
        return absl::OkStatus();
      case agent::v1::ConnectRequest::MESSAGE_NOT_SET:
        return contract::BadField("message", "is not set, or is of a later protocol version");
    }
    return contract::BadField("hello", "must be the first message of the stream");
  }

  absl::Status ReceiveHello() {
    if (session_ != 0) {
      return contract::BadField("hello", "came twice; it is the first message, and only the first");
    }
    agent::v1::AgentHello& hello = *request_.mutable_hello();
    if (absl::Status status = identity_.CheckSpeaksFor(hello.cluster()); !status.ok())
      return status;
    {
      const MutexLock lock(mutex_);
      cluster_ = hello.cluster();
      shared_user_ = std::move(*hello.mutable_shared_user());
    }
    const core::SessionId session = context_.engine->Connect(std::move(hello), self_);
    const MutexLock lock(mutex_);
    session_ = session;
    return absl::OkStatus();
  }

  // The agent sends no more: the core must not count on it. All reactions that read have ended by
  // now.
  void Leave() {
    if (session_ == 0 || left_) return;
    left_ = true;
    context_.engine->Gone(session_);
    // A refused agent was never connected; another one of its name may be.
    if (IsWelcomed()) LogEvent(spdlog::level::info, "agent_disconnected", {{"cluster", cluster_}});
  }

  void LogConnected(uint64_t agent_epoch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    LogEvent(spdlog::level::info, "agent_connected",
             {{"cluster", cluster_},
              {"agent_epoch", fmt::format("{}", agent_epoch)},
              {"peer", call_->peer()},
              {"certificate", identity_.serial()}});
    if (shared_user_.empty()) return;
    LogEvent(spdlog::level::info, "jobs_run_as_agent",
             {{"cluster", cluster_}, {"meaning", shared_user_}});
  }

  // Tells whether the welcome was sent: no message may be sent before it.
  bool IsWelcomed() {
    const MutexLock lock(welcome_mutex_);
    return is_welcomed_;
  }

  static absl::Status NotNow(std::string_view why) {
    return contract::Error(absl::StatusCode::kUnavailable, "AGENT_NOT_READY",
                           fmt::format("the agent {}; ask again", why));
  }

  void ReadIfDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (reading_ || finished_ || unhandled_ >= kMaxUnhandled) return;
    reading_ = true;
    StartRead(&request_);
  }

  const Context context_;
  grpc::CallbackServerContext* const call_;
  const AgentIdentity identity_;
  const SteadyClock::time_point opened_ = SteadyClock::now();
  std::shared_ptr<AgentStream> self_;

  // These members serve reading: one reaction at a time, then OnDone.
  agent::v1::ConnectRequest request_;
  bool left_ = false;

  rpc::StreamWriter<agent::v1::ConnectResponse>
      writer_;  // its lock is taken before mutex_, never after

  PendingQuestions questions_;

  Mutex welcome_mutex_;  // is taken before the writer's lock, never after
  bool is_welcomed_ ABSL_GUARDED_BY(welcome_mutex_) = false;

  Mutex mutex_;
  // Only the reading reaction writes these two, and it reads them without the lock.
  std::string cluster_;
  core::SessionId session_ = 0;
  std::string shared_user_ ABSL_GUARDED_BY(mutex_);  // as in the hello
  int unhandled_ ABSL_GUARDED_BY(mutex_) = 0;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<SteadyClock::time_point> closing_since_ ABSL_GUARDED_BY(mutex_);
};

class AgentLinkService : public agent::v1::AgentLinkService::CallbackService {
 public:
  explicit AgentLinkService(const Context& context) : context_(context) {}

  grpc::ServerBidiReactor<agent::v1::ConnectRequest, agent::v1::ConnectResponse>* Connect(
      grpc::CallbackServerContext* call) override {
    auto stream = std::make_shared<AgentStream>(context_, call);
    stream->Begin();
    return stream.get();
  }

 private:
  const Context context_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeAgentLinkService(const Context& context) {
  return std::make_unique<AgentLinkService>(context);
}

}  // namespace muster::broker
