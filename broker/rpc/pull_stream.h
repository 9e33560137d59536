// A server stream whose messages are read from the store or the archive as fast as the client takes
// them, and no faster: it holds what one Step has read, and reads on when that is sent.
//
// Wake, Tick and End come from any thread; gRPC's reactions from its threads; Step runs on the
// reader pool, never twice at a time. The object holds itself until OnDone.
#ifndef MUSTER_BROKER_RPC_PULL_STREAM_H_
#define MUSTER_BROKER_RPC_PULL_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "broker/rpc/context.h"
#include "broker/rpc/stream_registry.h"
#include "broker/rpc/watch_hub.h"
#include "broker/rpc/worker_pool.h"
#include "rpc/status.h"

namespace muster::broker {

template <typename Message>
class PullStream : public grpc::ServerWriteReactor<Message>,
                   public OpenStream,
                   public Watcher,
                   public std::enable_shared_from_this<PullStream<Message>> {
 public:
  // Registers the stream and reads for the first time, or ends it with what is wrong.
  void Begin(absl::Status valid) {
    self_ = this->shared_from_this();
    if (valid.ok()) valid = context_.streams->Add(self_);
    std::lock_guard lock(mutex_);
    if (!valid.ok()) return FinishLocked(valid);
    this->StartSendInitialMetadata();
    woken_ = true;
    ReadIfDue();
  }

  void Wake() override {
    std::lock_guard lock(mutex_);
    woken_ = true;
    ReadIfDue();
  }

  void Tick(SteadyClock::time_point now) override {
    std::lock_guard lock(mutex_);
    if (ended_ || reading_ || !messages_.empty()) return;
    if (IsDue()) {
      woken_ = true;
      return ReadIfDue();
    }
    if (absl::FromChrono(now - last_write_) < context_.heartbeat_interval) return;
    if (std::optional<Message> message = KeepAlive()) {
      messages_.push_back(*std::move(message));
      WriteFront();
    }
  }

  void End(const absl::Status& status) override {
    std::lock_guard lock(mutex_);
    FinishLocked(status);
  }

  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    messages_.pop_front();
    if (!ok) return FinishLocked(absl::CancelledError("the client went away"));
    if (!messages_.empty()) return WriteFront();
    if (final_status_) return FinishLocked(*final_status_);
    ReadIfDue();
  }

  void OnCancel() override { End(absl::CancelledError("the call was canceled")); }

  void OnDone() override {
    context_.streams->Remove(this);
    // The last of those who still wake this stream frees it.
    const auto self = std::move(self_);
    {
      std::lock_guard lock(mutex_);
      done_ = true;
      if (reading_) return;
    }
    Unhook();
  }

 protected:
  // What one step has read.
  struct Result {
    std::deque<Message> messages;
    bool more = false;                         // there is more to read at once
    std::optional<absl::Status> final_status;  // ends the stream after the messages
  };

  explicit PullStream(const Context& context) : context_(context) {}

  // Reads; bounds its own work and memory.
  virtual Result Step() = 0;
  // What to say when there has been nothing to say for a heartbeat's interval.
  virtual std::optional<Message> KeepAlive() { return std::nullopt; }
  // Whether time alone is a reason to read. Called with the lock held, never during a Step.
  virtual bool IsDue() { return false; }
  // Lets go of what wakes the stream. Called once, never during a Step.
  virtual void Unhook() = 0;

  const Context context_;

 private:
  void ReadIfDue() {
    if (ended_ || reading_ || !woken_ || final_status_ || !messages_.empty()) return;
    woken_ = false;
    reading_ = true;
    const bool posted =
        context_.readers->PostStep([self = this->shared_from_this()] { self->RunStep(); });
    if (posted) return;
    reading_ = false;
    FinishLocked(absl::UnavailableError("the broker is shutting down; try again"));
  }

  void RunStep() {
    Result result = Step();
    std::unique_lock lock(mutex_);
    reading_ = false;
    if (ended_) {
      const bool last = done_;
      lock.unlock();
      if (last) Unhook();
      return;
    }
    woken_ = woken_ || result.more;
    final_status_ = std::move(result.final_status);
    messages_ = std::move(result.messages);
    if (!messages_.empty()) return WriteFront();
    if (final_status_) return FinishLocked(*final_status_);
    ReadIfDue();
  }

  void WriteFront() {
    if (ended_) return;
    last_write_ = SteadyClock::now();
    // One call of the system for all that is there.
    grpc::WriteOptions options;
    if (messages_.size() > 1) options.set_buffer_hint();
    this->StartWrite(&messages_.front(), options);
  }

  void FinishLocked(const absl::Status& status) {
    if (ended_) return;
    ended_ = true;
    this->Finish(rpc::ToGrpc(status));
  }

  std::shared_ptr<PullStream> self_;

  std::mutex mutex_;
  std::deque<Message> messages_;  // the front is being written
  std::optional<absl::Status> final_status_;
  SteadyClock::time_point last_write_ = SteadyClock::now();
  bool woken_ = false;    // there may be something to read
  bool reading_ = false;  // a step waits or runs
  bool ended_ = false;    // Finish was called
  bool done_ = false;     // OnDone was called
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_PULL_STREAM_H_
