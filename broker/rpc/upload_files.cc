// A stream is read no faster than the disk takes its bytes; gRPC's flow control then holds the
// client back.
#include "broker/rpc/upload_files.h"

#include <fmt/format.h>

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "broker/files/upload.h"
#include "broker/rpc/stream_registry.h"
#include "broker/rpc/worker_pool.h"
#include "contract/errors.h"
#include "contract/file_tree.h"
#include "contract/text.h"
#include "daemon/log.h"
#include "rpc/status.h"

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
  UploadStream(const Context& context, std::string user, std::atomic<int>* open,
               v1::UploadFilesResponse* response)
      : context_(context),
        user_(std::move(user)),
        open_(open),
        response_(response),
        upload_(context.files) {}

  void Begin() {
    self_ = shared_from_this();
    absl::Status admitted = open_->fetch_add(1) < kMaxUploads ? absl::OkStatus() : TooMany();
    if (admitted.ok()) admitted = context_.streams->Add(self_);
    const std::lock_guard lock(mutex_);
    if (!admitted.ok()) return FinishLocked(admitted);
    // The metadata tell the client that it has its place; it may wait for that before it reads its
    // files.
    StartSendInitialMetadata();
    ReadIfDue();
  }

  // ---- OpenStream

  void Tick(SteadyClock::time_point now) override {
    const std::lock_guard lock(mutex_);
    if (!reading_ || half_closed_ || working_ || now - read_since_ < kMaxSilence) return;
    FinishLocked(contract::Error(
        absl::StatusCode::kDeadlineExceeded, "UPLOAD_SILENT",
        fmt::format("nothing came for {} s; upload again, what is there already is not needed",
                    kMaxSilence.count())));
  }

  void End(const absl::Status& status) override {
    const std::lock_guard lock(mutex_);
    FinishLocked(status);
  }

  // ---- reactions

  void OnReadDone(bool ok) override {
    const std::lock_guard lock(mutex_);
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

  void ReadIfDue() {
    if (reading_ || half_closed_ || finished_ || queue_.size() >= kMaxQueued) return;
    reading_ = true;
    read_since_ = SteadyClock::now();
    StartRead(&request_);
  }

  void WorkIfDue() {
    if (working_ || finished_ || (queue_.empty() && !half_closed_)) return;
    working_ = true;
    if (context_.file_workers->PostStep([self = shared_from_this()] { self->Work(); })) return;
    FinishLocked(absl::UnavailableError("the broker is shutting down; try again"));
  }

  // Runs on the file workers, never twice at a time.
  void Work() {
    std::unique_lock lock(mutex_);
    // Takes a bounded number, so that other streams get their turn.
    for (size_t i = 0; i < kMaxQueued && !queue_.empty() && !finished_; ++i) {
      const v1::UploadFilesRequest request = std::move(queue_.front());
      queue_.pop_front();
      ReadIfDue();
      lock.unlock();
      const absl::Status status = Handle(request);
      lock.lock();
      if (!status.ok()) return Refuse(status);
    }
    if (half_closed_ && queue_.empty() && !finished_) {
      lock.unlock();
      const auto counts = upload_.Finish();
      lock.lock();
      return counts.ok() ? Accept(*counts) : Refuse(counts.status());
    }
    working_ = false;
    WorkIfDue();
  }

  absl::Status Handle(const v1::UploadFilesRequest& request) {
    switch (request.part_case()) {
      case v1::UploadFilesRequest::kHead:
        return upload_.Begin(request.head().sha256(), request.head().size_bytes());
      case v1::UploadFilesRequest::kChunk:
        if (request.chunk().size() > contract::kMaxFileChunkBytes) {
          return contract::BadField(
              "chunk", fmt::format("has {} bytes; the most is {}", request.chunk().size(),
                                   contract::kMaxFileChunkBytes));
        }
        return upload_.Append(request.chunk());
      case v1::UploadFilesRequest::PART_NOT_SET:
        break;
    }
    return contract::BadField("part", "is not set; send a head or a chunk");
  }

  // These two end the work for good; the lock is held.
  void Accept(const files::FileStore::Counts& counts) {
    if (finished_) return;
    response_->set_stored_files(counts.stored);
    response_->set_known_files(counts.known);
    LogEvent(spdlog::level::info, "files_uploaded",
             {{"user", user_},
              {"stored", fmt::format("{}", counts.stored)},
              {"known", fmt::format("{}", counts.known)}});
    FinishLocked(absl::OkStatus());
  }

  void Refuse(const absl::Status& status) {
    if (finished_) return;
    LogEvent(spdlog::level::warn, "upload_refused",
             {{"user", user_}, {"why", std::string(ToStd(status.message()))}});
    FinishLocked(status);
  }

  void FinishLocked(const absl::Status& status) {
    if (std::exchange(finished_, true)) return;
    Finish(rpc::ToGrpc(status));
  }

  const Context context_;
  const std::string user_;
  std::atomic<int>* const open_;
  v1::UploadFilesResponse* const response_;  // owned by gRPC, valid until Finish
  std::shared_ptr<UploadStream> self_;

  files::Upload upload_;  // used by one Work at a time

  std::mutex mutex_;
  v1::UploadFilesRequest request_;  // being read
  std::deque<v1::UploadFilesRequest> queue_;
  SteadyClock::time_point read_since_;
  bool reading_ = false;
  bool working_ = false;      // a Work waits or runs, or the last one has run
  bool half_closed_ = false;  // the client sends no more
  bool finished_ = false;
};

}  // namespace

grpc::ServerReadReactor<v1::UploadFilesRequest>* NewUploadStream(
    const Context& context, std::string user, std::atomic<int>* open,
    v1::UploadFilesResponse* response) {
  auto stream = std::make_shared<UploadStream>(context, std::move(user), open, response);
  UploadStream* reactor = stream.get();
  stream->Begin();
  return reactor;
}

}  // namespace muster::broker
