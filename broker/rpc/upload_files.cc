// A stream is read no faster than the disk takes its bytes; gRPC's flow control then holds the
// client back.
#include "broker/rpc/upload_files.h"

#include <fmt/format.h>

#include <chrono>
#include <deque>
#include <memory>
#include <utility>

#include "broker/app/worker_pool.h"
#include "broker/rpc/stream_registry.h"
#include "contract/errors.h"
#include "rpc/status.h"
#include "sync/mutex.h"

namespace muster::broker {
namespace {

// Uploads at the same time; each has up to 65 open files and a MiB on its way. More uploads would
// only share the same disk.
constexpr int kMaxUploads = 32;
// Messages of one stream that were read and are not on disk yet: they keep disk and network busy at
// the same time.
constexpr size_t kMaxQueued = 4;
// Longest time between two messages of a client. It only reads files from its own disk; a silent
// client would hold a place and room for nothing.
constexpr std::chrono::seconds kMaxSilence{60};

class UploadStream final : public grpc::ServerReadReactor<v1::UploadFilesRequest>,
                           public OpenStream,
                           public std::enable_shared_from_this<UploadStream> {
 public:
  UploadStream(const Context& context, std::atomic<int>* open, v1::UploadFilesResponse* response)
      : context_(context), open_(open), response_(response) {}

  void Begin(absl::StatusOr<std::unique_ptr<FileReceiver>> receiver,
             const std::shared_ptr<const auth::Token>& token) {
    self_ = shared_from_this();
    absl::Status admitted = open_->fetch_add(1) < kMaxUploads ? receiver.status() : TooMany();
    if (admitted.ok()) receiver_ = *std::move(receiver);
    if (admitted.ok()) admitted = context_.streams->Add(self_, token);
    const MutexLock lock(mutex_);
    if (!admitted.ok()) return FinishLocked(admitted);
    // The metadata tell the client that it has its place; it may wait for that before it reads its
    // files.
    StartSendInitialMetadata();
    ReadIfDue();
  }

  // ---- OpenStream

  void Tick(SteadyClock::time_point now) override {
    const MutexLock lock(mutex_);
    if (!reading_ || half_closed_ || working_ || now - read_since_ < kMaxSilence) return;
    FinishLocked(contract::Error(
        absl::StatusCode::kDeadlineExceeded, "UPLOAD_SILENT",
        fmt::format("nothing came for {} s; upload again, what is there already is not needed",
                    kMaxSilence.count())));
  }

  void End(const absl::Status& status) override {
    const MutexLock lock(mutex_);
    FinishLocked(status);
  }

  // ---- reactions

  void OnReadDone(bool ok) override {
    const MutexLock lock(mutex_);
    reading_ = false;
    if (ok) {
      queue_.push_back(std::move(request_));
      ReadIfDue();
    } else {
      half_closed_ = true;
    }
    WorkIfDue();
  }

  void OnCancel() override { End(absl::CancelledError("the call was canceled")); }

  void OnDone() override {
    context_.streams->Remove(this);
    open_->fetch_sub(1);
    // The incomplete file is removed on a thread that may block.
    auto self = std::move(self_);
    context_.file_workers->PostStep([self = std::move(self)] {});
  }

 private:
  static absl::Status TooMany() {
    return contract::RetryableError(
        absl::StatusCode::kResourceExhausted, "TOO_MANY_UPLOADS",
        fmt::format("{} uploads are under way, the most at the same time; try again", kMaxUploads),
        absl::Seconds(1));
  }

  void ReadIfDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (reading_ || half_closed_ || finished_ || queue_.size() >= kMaxQueued) return;
    reading_ = true;
    read_since_ = SteadyClock::now();
    StartRead(&request_);
  }

  void WorkIfDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (working_ || finished_ || (queue_.empty() && !half_closed_)) return;
    working_ = true;
    if (context_.file_workers->PostStep([self = shared_from_this()] { self->Work(); })) return;
    FinishLocked(contract::ShuttingDown());
  }

  // Runs on the file workers, never twice at a time.
  void Work() {
    MutexLock lock(mutex_);
    // Takes a bounded number, so that other streams get their turn.
    for (size_t i = 0; i < kMaxQueued && !queue_.empty() && !finished_; ++i) {
      const v1::UploadFilesRequest request = std::move(queue_.front());
      queue_.pop_front();
      ReadIfDue();
      lock.Unlock();
      const absl::Status status = receiver_->Take(request);
      lock.Lock();
      if (!status.ok()) return FinishLocked(status);
    }
    if (half_closed_ && queue_.empty() && !finished_) {
      lock.Unlock();
      const absl::StatusOr<v1::UploadFilesResponse> response = receiver_->Finish();
      lock.Lock();
      if (finished_) return;
      if (response.ok()) *response_ = *response;
      return FinishLocked(response.status());
    }
    working_ = false;
    WorkIfDue();
  }

  void FinishLocked(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (std::exchange(finished_, true)) return;
    Finish(rpc::ToGrpc(status));
  }

  const Context context_;
  std::atomic<int>* const open_;
  v1::UploadFilesResponse* const response_;  // owned by gRPC, valid until Finish
  std::shared_ptr<UploadStream> self_;

  std::unique_ptr<FileReceiver> receiver_;  // used by one Work at a time

  Mutex mutex_;
  v1::UploadFilesRequest request_;  // being read
  std::deque<v1::UploadFilesRequest> queue_ ABSL_GUARDED_BY(mutex_);
  SteadyClock::time_point read_since_ ABSL_GUARDED_BY(mutex_);
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool working_ ABSL_GUARDED_BY(mutex_) = false;  // a Work waits or runs, or the last one has run
  bool half_closed_ ABSL_GUARDED_BY(mutex_) = false;  // the client sends no more
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

grpc::ServerReadReactor<v1::UploadFilesRequest>* NewUploadStream(
    const Context& context, const Principal& caller,
    absl::StatusOr<std::unique_ptr<FileReceiver>> receiver, std::atomic<int>* open,
    v1::UploadFilesResponse* response) {
  auto stream = std::make_shared<UploadStream>(context, open, response);
  UploadStream* reactor = stream.get();
  stream->Begin(std::move(receiver), caller.token);
  return reactor;
}

}  // namespace muster::broker
