#include "broker/http/calls.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/client_callback.h>
#include <grpcpp/support/slice.h>

#include <atomic>
#include <utility>

#include "absl/time/time.h"
#include "rpc/status.h"

namespace muster::http {
namespace {

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

std::string ToString(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

grpc::GenericStub StubOf(const std::shared_ptr<grpc::Channel>& channel) {
  return grpc::GenericStub(channel);
}

void Prepare(const CallStart& start, grpc::ClientContext* context) {
  for (const auto& [name, value] : start.metadata) context->AddMetadata(name, value);
  if (start.deadline != absl::InfiniteFuture()) {
    context->set_deadline(absl::ToChronoTime(start.deadline));
  }
}

// It keeps itself alive until it has ended.
class UnaryCall final : public Call, public std::enable_shared_from_this<UnaryCall> {
 public:
  explicit UnaryCall(CallEvents events) : events_(std::move(events)) {}

  void Begin(const std::shared_ptr<grpc::Channel>& channel, CallStart start) {
    Prepare(start, &context_);
    request_ = ToBuffer(start.messages.front());
    StubOf(channel).UnaryCall(&context_, start.path, {}, &request_, &answer_,
                              [self = shared_from_this()](const grpc::Status& status) {
                                self->events_.done(rpc::FromGrpc(status),
                                                   status.ok() ? ToString(self->answer_) : "");
                              });
  }

  void Cancel() override { context_.TryCancel(); }
  void ReadOn() override {}

 private:
  const CallEvents events_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer answer_;
};

// It keeps itself alive until OnDone. At any time one read is in progress, or its message is with
// the owner of the events. A hold keeps the call until the read that fails, which is the last.
class StreamCall final : public Call,
                         public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                         public std::enable_shared_from_this<StreamCall> {
 public:
  StreamCall(CallStart start, CallEvents events)
      : start_(std::move(start)), events_(std::move(events)) {}

  void Begin(const std::shared_ptr<grpc::Channel>& channel) {
    self_ = shared_from_this();
    Prepare(start_, &context_);
    StubOf(channel).PrepareBidiStreamingCall(&context_, start_.path, {}, this);
    AddHold();
    is_reading_ = true;
    StartRead(&read_);
    WriteNext();
    StartCall();
  }

  void Cancel() override {
    is_canceled_ = true;
    context_.TryCancel();
    ReadOn();
  }

  void ReadOn() override {
    if (!is_reading_.exchange(true)) StartRead(&read_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return RemoveHold();
    std::string message = ToString(read_);
    read_.Clear();
    is_reading_ = false;
    if (is_canceled_) return ReadOn();
    events_.message(std::move(message));
  }

  void OnWriteDone(bool ok) override {
    if (ok) WriteNext();
  }

  void OnDone(const grpc::Status& status) override {
    const std::shared_ptr<StreamCall> self = std::move(self_);
    events_.done(rpc::FromGrpc(status), "");
  }

 private:
  void WriteNext() {
    if (next_ >= start_.messages.size()) {
      if (start_.messages.empty()) StartWritesDone();
      return;
    }
    write_ = ToBuffer(start_.messages[next_]);
    start_.messages[next_].clear();
    ++next_;
    if (next_ == start_.messages.size()) {
      StartWriteLast(&write_, {});
    } else {
      StartWrite(&write_);
    }
  }

  CallStart start_;
  const CallEvents events_;
  grpc::ClientContext context_;
  grpc::ByteBuffer read_;
  grpc::ByteBuffer write_;
  size_t next_ = 0;  // of the messages; one write is under way at a time
  std::atomic<bool> is_reading_ = false;
  std::atomic<bool> is_canceled_ = false;
  std::shared_ptr<StreamCall> self_;
};

}  // namespace

Calls::Calls(std::shared_ptr<grpc::Channel> channel) : channel_(std::move(channel)) {}
Calls::~Calls() = default;

std::shared_ptr<Call> Calls::StartUnary(CallStart start, CallEvents events) const {
  auto call = std::make_shared<UnaryCall>(std::move(events));
  call->Begin(channel_, std::move(start));
  return call;
}

std::shared_ptr<Call> Calls::StartStream(CallStart start, CallEvents events) const {
  auto call = std::make_shared<StreamCall>(std::move(start), std::move(events));
  call->Begin(channel_);
  return call;
}

}  // namespace muster::http
