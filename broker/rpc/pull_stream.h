// A server stream whose messages are read from a source only as fast as the client takes them: it
// holds the result of one step, and reads on when that is sent.
//
// Any thread calls Wake, Tick and End; gRPC's threads call its reactions; the reader pool asks the
// source, never twice at a time. The object holds itself until OnDone.
#ifndef MUSTER_BROKER_RPC_PULL_STREAM_H_
#define MUSTER_BROKER_RPC_PULL_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/pull_source.h"
#include "broker/app/worker_pool.h"
#include "broker/rpc/context.h"
#include "broker/rpc/stream_registry.h"
#include "contract/errors.h"
#include "rpc/status.h"
#include "sync/mutex.h"

namespace muster::broker {

// `Piece` is the source's type, and `to_wire` turns it into what gRPC sends.
template <typename Message, typename Piece = Message>
class PullStream final : public grpc::ServerWriteReactor<Message>,
                         public OpenStream,
                         public Watcher,
                         public std::enable_shared_from_this<PullStream<Message, Piece>> {
 public:
  using Source = PullSource<Piece>;
  using ToWire = Message (*)(Piece);

  // The stream frees itself. Without a source it ends at once with the source's error.
  static PullStream* Start(const Context& context, const Principal& caller,
                           absl::StatusOr<std::unique_ptr<Source>> source, ToWire to_wire) {
    const absl::Status valid = source.status();
    auto stream =
        std::make_shared<PullStream>(context, valid.ok() ? *std::move(source) : nullptr, to_wire);
    if (valid.ok()) stream->source_->Hook(stream);
    stream->Begin(valid, caller.token);
    return stream.get();
  }

  PullStream(const Context& context, std::unique_ptr<Source> source, ToWire to_wire)
      : context_(context), source_(std::move(source)), to_wire_(to_wire) {}

  void Wake() override {
    const MutexLock lock(mutex_);
    woken_ = true;
    ReadIfDue();
  }

  void Tick(SteadyClock::time_point now) override {
    const MutexLock lock(mutex_);
    if (ended_ || reading_ || !messages_.empty()) return;
    if (source_->IsDue()) {
      woken_ = true;
      return ReadIfDue();
    }
    if (absl::FromChrono(now - last_write_) < context_.heartbeat_interval) return;
    if (std::optional<Piece> piece = source_->KeepAlive()) {
      messages_.push_back(to_wire_(*std::move(piece)));
      WriteFront();
    }
  }

  void End(const absl::Status& status) override {
    const MutexLock lock(mutex_);
    FinishLocked(status);
  }

  void OnWriteDone(bool ok) override {
    const MutexLock lock(mutex_);
    messages_.pop_front();
    if (!ok) return FinishLocked(absl::CancelledError("the client went away"));
    if (!messages_.empty()) return WriteFront();
    if (final_status_) return FinishLocked(*final_status_);
    ReadIfDue();
  }

  void OnCancel() override { End(absl::CancelledError("the call was canceled")); }

  void OnDone() override {
    context_.streams->Remove(this);
    // The last holder of a reference to this stream frees it.
    const auto self = std::move(self_);
    {
      const MutexLock lock(mutex_);
      done_ = true;
      if (reading_) return;
    }
    Unhook();
  }

 private:
  // Registers the stream and reads for the first time, or ends it with the error.
  void Begin(absl::Status valid, const std::shared_ptr<const auth::Token>& token) {
    self_ = this->shared_from_this();
    if (valid.ok()) valid = context_.streams->Add(self_, token);
    const MutexLock lock(mutex_);
    if (!valid.ok()) return FinishLocked(valid);
    this->StartSendInitialMetadata();
    woken_ = true;
    ReadIfDue();
  }

  void Unhook() {
    if (source_) source_->Unhook();
  }

  void ReadIfDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (ended_ || reading_ || !woken_ || final_status_ || !messages_.empty()) return;
    woken_ = false;
    reading_ = true;
    const bool posted =
        context_.readers->PostStep([self = this->shared_from_this()] { self->RunStep(); });
    if (posted) return;
    reading_ = false;
    FinishLocked(contract::ShuttingDown());
  }

  void RunStep() {
    typename Source::Pulled result = source_->Next();
    std::deque<Message> messages;
    for (Piece& piece : result.messages) messages.push_back(to_wire_(std::move(piece)));
    MutexLock lock(mutex_);
    reading_ = false;
    if (ended_) {
      const bool last = done_;
      lock.Unlock();
      if (last) Unhook();
      return;
    }
    woken_ = woken_ || result.more;
    final_status_ = std::move(result.final_status);
    messages_ = std::move(messages);
    if (!messages_.empty()) return WriteFront();
    if (final_status_) return FinishLocked(*final_status_);
    ReadIfDue();
  }

  void WriteFront() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (ended_) return;
    last_write_ = SteadyClock::now();
    // One system call for all messages that are there.
    grpc::WriteOptions options;
    if (messages_.size() > 1) options.set_buffer_hint();
    this->StartWrite(&messages_.front(), options);
  }

  void FinishLocked(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (ended_) return;
    ended_ = true;
    this->Finish(rpc::ToGrpc(status));
  }

  const Context context_;
  const std::unique_ptr<Source> source_;  // null: the request was refused
  const ToWire to_wire_;
  std::shared_ptr<PullStream> self_;

  Mutex mutex_;
  std::deque<Message> messages_ ABSL_GUARDED_BY(mutex_);  // the front is being written
  std::optional<absl::Status> final_status_ ABSL_GUARDED_BY(mutex_);
  SteadyClock::time_point last_write_ ABSL_GUARDED_BY(mutex_) = SteadyClock::now();
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;    // there may be something to read
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;  // a step waits or runs
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;    // Finish was called
  bool done_ ABSL_GUARDED_BY(mutex_) = false;     // OnDone was called
};

// A stream of messages that are sent as they are.
template <typename Message>
grpc::ServerWriteReactor<Message>* StartPull(
    const Context& context, const Principal& caller,
    absl::StatusOr<std::unique_ptr<PullSource<Message>>> source) {
  return PullStream<Message>::Start(context, caller, std::move(source),
                                    [](Message message) { return message; });
}

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_PULL_STREAM_H_
