// Queues the writes of one gRPC callback stream, with a bound, one write in flight and exactly one
// Finish.
//
// gRPC allows one outstanding write for a stream, and its reactions run on any thread. This class
// alone sees to that: all methods may be called from any thread.
#ifndef MUSTER_PROTO_RPC_STREAM_WRITER_H_
#define MUSTER_PROTO_RPC_STREAM_WRITER_H_

#include <grpcpp/support/status.h>

#include <cstddef>
#include <functional>
#include <limits>
#include <list>
#include <optional>
#include <utility>

#include "sync/mutex.h"

namespace muster::rpc {

template <typename Message>
class StreamWriter {
 public:
  // `start_write` and `finish` are called with the lock held; they only start an operation.
  // `finish` on a client half-closes (StartWritesDone). `max_bytes` bounds what the messages have
  // together; one alone may have more.
  StreamWriter(size_t capacity, std::function<void(const Message*)> start_write,
               std::function<void(const grpc::Status&)> finish,
               size_t max_bytes = std::numeric_limits<size_t>::max())
      : capacity_(capacity),
        max_bytes_(max_bytes),
        start_write_(std::move(start_write)),
        finish_(std::move(finish)) {}

  // False: the queue is full or the stream is closing; the message was not taken.
  bool Offer(Message message) {
    const size_t bytes = message.ByteSizeLong();
    const MutexLock lock(mutex_);
    if (closing_ || queue_.size() >= capacity_) return false;
    if (!queue_.empty() && (bytes_ >= max_bytes_ || bytes > max_bytes_ - bytes_)) return false;
    bytes_ += bytes;
    queue_.push_back({std::move(message), bytes});
    if (queue_.size() == 1) start_write_(&queue_.front().message);
    return true;
  }

  // Call from OnWriteDone. `ok` false: the stream is broken, and what is queued is dropped.
  void OnWriteDone(bool ok) {
    const MutexLock lock(mutex_);
    bytes_ -= queue_.front().bytes;
    queue_.pop_front();
    if (!ok) {
      closing_ = true;
      queue_.clear();
      bytes_ = 0;
    }
    if (!queue_.empty()) {
      start_write_(&queue_.front().message);
    } else {
      FinishIfDue();
    }
  }

  // Finishes once what is queued has been written. Later calls change nothing.
  void Close(const grpc::Status& status) {
    const MutexLock lock(mutex_);
    closing_ = true;
    if (!final_status_) final_status_ = status;
    if (queue_.empty()) FinishIfDue();
  }

  // Waits until no other thread is inside. Call it from OnDone before freeing the writer.
  void AwaitIdle() { const MutexLock lock(mutex_); }

  // Tells whether nothing is taken any more, whether or not there is room.
  bool is_closing() const {
    const MutexLock lock(mutex_);
    return closing_;
  }

  size_t size() const {
    const MutexLock lock(mutex_);
    return queue_.size();
  }

 private:
  struct Queued {
    Message message;
    size_t bytes;
  };

  void FinishIfDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!final_status_ || finished_) return;
    finished_ = true;
    finish_(*final_status_);
  }

  const size_t capacity_;
  const size_t max_bytes_;
  const std::function<void(const Message*)> start_write_;
  const std::function<void(const grpc::Status&)> finish_;

  mutable Mutex mutex_;
  // The front is being written. It is a list, because most streams are idle, and an empty deque
  // holds 576 bytes.
  std::list<Queued> queue_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of the queue
  std::optional<grpc::Status> final_status_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::rpc

#endif  // MUSTER_PROTO_RPC_STREAM_WRITER_H_
