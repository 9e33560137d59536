#include "agents/core/broker_link.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/sync_stream.h>

#include <chrono>
#include <utility>

#include "agents/core/client_stream.h"
#include "muster/agent/v1/agent_link.grpc.pb.h"
#include "muster/agent/v1/file_link.grpc.pb.h"
#include "muster/agent/v1/log_link.grpc.pb.h"
#include "muster/agent/v1/secret_link.grpc.pb.h"
#include "rpc/status.h"

namespace muster::agents {
namespace {

// The agent keeps fewer events in flight than this (Options::max_unacked_events and
// max_unacked_event_bytes), and a few heartbeats beside them; more that waits means that the broker
// does not read.
constexpr QueueBounds kMaxQueuedRequests = {.messages = 16'384, .bytes = 64 << 20};
// Messages from the broker that the agent has not handled.
constexpr int kMaxUnhandledMessages = 32;
// At most this many chunks wait for the connection; each has up to 64 KiB, and the names around it.
constexpr QueueBounds kMaxQueuedChunks = {.messages = 64, .bytes = 8 << 20};
// Answers are handled as they come: the shipper bounds the chunks that it waits for.
constexpr int kMaxUnhandledAnswers = 1;

// A launch waits for it.
constexpr std::chrono::seconds kSecretsPatience{20};

std::shared_ptr<grpc::Channel> MakeChannel(const BrokerEnd& broker) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // A connection of its own, with a back-off of its own.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(broker.target, CredentialsFor(broker), arguments);
}

class GrpcControlLink final : public ControlLink {
 public:
  using Stream = ClientStream<agent::v1::ConnectRequest, agent::v1::ConnectResponse>;

  GrpcControlLink(const BrokerEnd& broker, Callbacks callbacks)
      : channel_(MakeChannel(broker)),
        stub_(agent::v1::AgentLinkService::NewStub(channel_)),
        stream_(kMaxQueuedRequests, kMaxUnhandledMessages,
                {std::move(callbacks.on_message), std::move(callbacks.on_end), nullptr}) {
    stream_.Start(
        [this](auto* context, auto* reactor) { stub_->async()->Connect(context, reactor); });
  }

  Sent Send(agent::v1::ConnectRequest message) override {
    if (stream_.Send(std::move(message))) return Sent::kYes;
    return stream_.is_over() ? Sent::kOver : Sent::kFull;
  }
  void Handled() override { stream_.Handled(); }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<agent::v1::AgentLinkService::Stub> stub_;
  Stream stream_;
};

class GrpcPushLink final : public PushLink {
 public:
  using Stream = ClientStream<agent::v1::PushRequest, agent::v1::PushResponse>;

  GrpcPushLink(const BrokerEnd& broker, Callbacks callbacks)
      : channel_(MakeChannel(broker)),
        stub_(agent::v1::LogLinkService::NewStub(channel_)),
        on_answer_(std::move(callbacks.on_answer)),
        stream_(kMaxQueuedChunks, kMaxUnhandledAnswers,
                {[this](agent::v1::PushResponse answer) { OnAnswer(std::move(answer)); },
                 std::move(callbacks.on_end), std::move(callbacks.on_room)}) {
    stream_.Start([this](auto* context, auto* reactor) { stub_->async()->Push(context, reactor); });
  }

  bool Send(const agent::v1::PushRequest& message) override { return stream_.Send(message); }

 private:
  void OnAnswer(agent::v1::PushResponse answer) {
    on_answer_(std::move(answer));
    stream_.Handled();
  }

  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<agent::v1::LogLinkService::Stub> stub_;
  const std::function<void(agent::v1::PushResponse)> on_answer_;
  Stream stream_;
};

class GrpcFilesLink final : public FilesLink {
 public:
  explicit GrpcFilesLink(const BrokerEnd& broker)
      : channel_(MakeChannel(broker)),
        stub_(agent::v1::FileLinkService::NewStub(channel_)),
        writer_(stub_->SendFiles(&context_, &response_)) {}

  ~GrpcFilesLink() override {
    if (is_finished_) return;
    context_.TryCancel();
    writer_->Finish();
  }

  bool Send(const agent::v1::SendFilesRequest& message) override { return writer_->Write(message); }

  absl::Status Finish() override {
    is_finished_ = true;
    writer_->WritesDone();
    return rpc::FromGrpc(writer_->Finish());
  }

  void Cancel() override { context_.TryCancel(); }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<agent::v1::FileLinkService::Stub> stub_;
  grpc::ClientContext context_;
  agent::v1::SendFilesResponse response_;
  const std::unique_ptr<grpc::ClientWriter<agent::v1::SendFilesRequest>> writer_;
  bool is_finished_ = false;
};

}  // namespace

Dialer::Dialer(BrokerEnd broker) : broker_(std::move(broker)), keeper_(MakeChannel(broker_)) {}
Dialer::~Dialer() = default;

std::unique_ptr<ControlLink> Dialer::DialControl(ControlLink::Callbacks callbacks) {
  return std::make_unique<GrpcControlLink>(broker_, std::move(callbacks));
}

std::unique_ptr<PushLink> Dialer::DialPush(PushLink::Callbacks callbacks) {
  return std::make_unique<GrpcPushLink>(broker_, std::move(callbacks));
}

std::unique_ptr<FilesLink> Dialer::DialFiles() { return std::make_unique<GrpcFilesLink>(broker_); }

absl::StatusOr<agent::v1::FetchRunSecretsResponse> Dialer::FetchSecrets(
    const std::string& cluster, const std::string& journal_id, const std::string& run_key) {
  agent::v1::FetchRunSecretsRequest request;
  request.set_cluster(cluster);
  request.set_journal_id(journal_id);
  request.set_run_key(run_key);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kSecretsPatience);
  agent::v1::FetchRunSecretsResponse response;
  const auto stub = agent::v1::SecretLinkService::NewStub(MakeChannel(broker_));
  const absl::Status status = rpc::FromGrpc(stub->FetchRunSecrets(&context, request, &response));
  if (!status.ok()) return status;
  return response;
}

}  // namespace muster::agents
