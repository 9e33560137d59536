// A bidirectional gRPC stream as its client sees it: bounded both ways, and over when its
// destructor returns.
//
// All methods may be called from any thread but gRPC's own; callbacks come from gRPC's threads, one
// at a time for each kind, and must only hand over. It includes gRPC's headers: for the .cc files
// of links only.
#ifndef MUSTER_AGENTS_CORE_CLIENT_STREAM_H_
#define MUSTER_AGENTS_CORE_CLIENT_STREAM_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "rpc/status.h"
#include "rpc/stream_writer.h"
#include "sync/mutex.h"

namespace muster::agents {

// The bounds of what a stream may hold that the other side has not read.
struct QueueBounds {
  size_t messages;
  size_t bytes;
};

template <typename Request, typename Response>
class ClientStream final : public grpc::ClientBidiReactor<Request, Response> {
 public:
  struct Callbacks {
    std::function<void(Response)> on_message;
    std::function<void(absl::Status)> on_end;  // last, and once
    std::function<void()> on_written;          // there is room for another message
  };

  // `max_queued` bounds what is to be written. `max_unhandled`: messages that were read and not yet
  // Handled.
  ClientStream(QueueBounds max_queued, int max_unhandled, Callbacks callbacks)
      : max_unhandled_(max_unhandled),
        callbacks_(std::move(callbacks)),
        writer_(
            max_queued.messages, [this](const Request* message) { this->StartWrite(message); },
            [this](const grpc::Status&) { this->StartWritesDone(); }, max_queued.bytes) {}

  // `call` starts the RPC with this context and reactor.
  template <typename Call>
  void Start(Call call) {
    call(&context_, this);
    this->AddHold();  // until reading has ended: writes and reads begin outside of reactions
    {
      const MutexLock lock(mutex_);
      ReadIfPaused();
    }
    this->StartCall();
  }

  // Ends the call and waits until no callback runs or will run.
  ~ClientStream() override {
    MutexLock lock(mutex_);
    context_.TryCancel();
    ReadIfPaused();
    while (!done_) lock.Wait(over_);
  }

  // False: too much is queued, or the stream is over.
  bool Send(Request message) { return writer_.Offer(std::move(message)); }

  // The stream has ended or is about to: on_end comes with the reason, if it has not come.
  bool is_over() const { return writer_.is_closing(); }

  // One message has been dealt with, so that another may be read.
  void Handled() {
    const MutexLock lock(mutex_);
    --unhandled_;
    if (unhandled_ < max_unhandled_) ReadIfPaused();
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) {
      writer_.Close(grpc::Status::OK);
      {
        const MutexLock lock(mutex_);
        ended_ = true;
      }
      this->RemoveHold();
      return;
    }
    Response message;
    message.Swap(&incoming_);
    callbacks_.on_message(std::move(message));
    const MutexLock lock(mutex_);
    reading_ = false;
    if (++unhandled_ < max_unhandled_) ReadIfPaused();
  }

  void OnWriteDone(bool ok) override {
    writer_.OnWriteDone(ok);
    if (ok && callbacks_.on_written) callbacks_.on_written();
  }

  void OnDone(const grpc::Status& status) override {
    writer_.AwaitIdle();
    callbacks_.on_end(rpc::FromGrpc(status));
    const MutexLock lock(mutex_);
    done_ = true;
    over_.notify_all();
  }

  void ReadIfPaused() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (reading_ || ended_) return;
    reading_ = true;
    this->StartRead(&incoming_);
  }

  const int max_unhandled_;
  const Callbacks callbacks_;
  grpc::ClientContext context_;
  Response incoming_;
  rpc::StreamWriter<Request> writer_;

  Mutex mutex_;
  std::condition_variable over_;
  int unhandled_ ABSL_GUARDED_BY(mutex_) = 0;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // no more reads
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_CLIENT_STREAM_H_
