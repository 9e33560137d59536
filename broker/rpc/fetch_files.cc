// Only one piece is on its way at a time: the agent's stream is read on when the client has taken
// the last piece, so that gRPC's flow control holds the agent back, and memory use stays flat.
#include "broker/rpc/fetch_files.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "broker/app/fetch_files.h"
#include "broker/app/fetches.h"
#include "broker/app/readers.h"
#include "broker/app/worker_pool.h"
#include "broker/rpc/stream_registry.h"
#include "contract/errors.h"
#include "rpc/status.h"
#include "sync/mutex.h"

namespace muster::broker {
namespace {

class FetchStream final : public grpc::ServerWriteReactor<v1::FetchFilesResponse>,
                          public OpenStream,
                          public FileTaker,
                          public std::enable_shared_from_this<FetchStream> {
 public:
  FetchStream(const Context& context, Principal principal, v1::FetchFilesRequest request)
      : context_(context), principal_(std::move(principal)), request_(std::move(request)) {}

  void Begin() {
    self_ = shared_from_this();
    absl::Status status = CheckFetch(principal_, request_);
    if (status.ok()) status = context_.streams->Add(self_, principal_.token);
    if (status.ok()) status = context_.fetches->Add(self_, &ticket_);
    if (!status.ok()) return EndWith(status);
    if (!context_.readers->PostCall([self = shared_from_this()] { self->Ask(); }))
      EndWith(context_.readers->Refusal());
  }

  // ---- FileTaker

  bool Attach(std::shared_ptr<FileFeed> feed) override {
    const MutexLock lock(mutex_);
    if (ended_ || feed_ != nullptr) return false;
    feed_ = std::move(feed);
    since_ = SteadyClock::now();
    return true;
  }

  void Take(v1::FetchFilesResponse piece) override {
    const MutexLock lock(mutex_);
    if (ended_) return;
    piece_ = std::move(piece);
    since_ = SteadyClock::now();
    StartWrite(&piece_);
  }

  void EndWith(const absl::Status& status) override {
    std::shared_ptr<FileFeed> feed;
    {
      const MutexLock lock(mutex_);
      if (std::exchange(ended_, true)) return;
      feed = std::move(feed_);
      Finish(rpc::ToGrpc(status));
    }
    if (feed != nullptr) feed->Close(absl::CancelledError("the client wants no more of it"));
  }

  // ---- OpenStream

  void Tick(SteadyClock::time_point now) override {
    bool has_begun = false;
    {
      const MutexLock lock(mutex_);
      has_begun = feed_ != nullptr;
      const absl::Duration most =
          has_begun ? context_.fetch_max_silence : context_.fetch_begin_patience;
      if (ended_ || absl::FromChrono(now - since_) < most) return;
    }
    EndWith(contract::Error(
        absl::StatusCode::kDeadlineExceeded, "FETCH_SILENT",
        has_begun ? fmt::format("nothing more went for {} s, because nobody took it or because the "
                                "cluster's file system hangs; try again",
                                absl::ToInt64Seconds(context_.fetch_max_silence))
                  : std::string("the agent has not begun to send; try again")));
  }

  void End(const absl::Status& status) override { EndWith(status); }

  // ---- reactions

  void OnWriteDone(bool ok) override {
    if (!ok) return EndWith(absl::CancelledError("the client went away"));
    std::shared_ptr<FileFeed> feed;
    {
      const MutexLock lock(mutex_);
      since_ = SteadyClock::now();
      feed = feed_;
    }
    if (feed != nullptr) feed->ReadOn();
  }

  void OnCancel() override { EndWith(absl::CancelledError("the call was canceled")); }

  void OnDone() override {
    context_.streams->Remove(this);
    if (!ticket_.empty()) context_.fetches->Remove(ticket_);
    const auto self = std::move(self_);
  }

 private:
  // Runs on the readers: finds which run it is, and on which cluster.
  void Ask() {
    AskForFiles(principal_, context_.app, request_, ticket_,
                [self = shared_from_this()](const absl::Status& status) {
                  if (!status.ok()) self->EndWith(status);
                });
  }

  const Context context_;
  const Principal principal_;
  const v1::FetchFilesRequest request_;
  std::shared_ptr<FetchStream> self_;
  std::string ticket_;  // set before any other thread knows of the stream

  Mutex mutex_;
  std::shared_ptr<FileFeed> feed_ ABSL_GUARDED_BY(mutex_);
  v1::FetchFilesResponse piece_ ABSL_GUARDED_BY(mutex_);  // being written
  SteadyClock::time_point since_ ABSL_GUARDED_BY(mutex_) = SteadyClock::now();
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

grpc::ServerWriteReactor<v1::FetchFilesResponse>* NewFetchStream(
    const Context& context, Principal principal, const v1::FetchFilesRequest& request) {
  auto stream = std::make_shared<FetchStream>(context, std::move(principal), request);
  FetchStream* reactor = stream.get();
  stream->Begin();
  return reactor;
}

}  // namespace muster::broker
