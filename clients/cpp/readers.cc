#include "clients/cpp/readers.h"

#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "clients/cpp/backoff.h"
#include "clients/cpp/errors.h"
#include "contract/errors.h"
#include "rpc/status.h"

namespace muster::client {
namespace {

// Whether asking again from where the stream broke off may help.
bool IsInterruption(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsAborted(status) ||
         (absl::IsResourceExhausted(status) && contract::GetRetryDelay(status).has_value());
}

// One stream after another of one method, until it ends well, or badly for good.
template <typename Request, typename Response>
class Resumed {
 public:
  using Reader = grpc::ClientReader<Response>;
  using Method = std::unique_ptr<Reader> (v1::Jobs::Stub::*)(grpc::ClientContext*, const Request&);

  Resumed(StreamContext context, Method method)
      : context_(context),
        method_(method),
        backoff_(context.options->first_backoff, context.options->max_backoff) {}

  ~Resumed() {
    if (!reader_) return;
    grpc_->TryCancel();
    reader_->Finish();
  }

  // The next message; nothing if the stream has ended well. `resume` is the request for the rest of
  // it.
  absl::StatusOr<std::optional<Response>> Next(const Request& resume) {
    Response response;
    while (true) {
      if (!reader_) Open(resume);
      if (reader_->Read(&response)) {
        *context_.was_answered = true;
        interrupted_since_ = absl::InfiniteFuture();
        backoff_.Reset();
        return std::optional<Response>(std::move(response));
      }
      const absl::Status status = rpc::FromGrpc(reader_->Finish());
      reader_.reset();
      if (status.ok()) return std::optional<Response>();
      if (absl::Status given_up = WaitToResume(status); !given_up.ok()) return given_up;
    }
  }

 private:
  void Open(const Request& request) {
    grpc_ = std::make_unique<grpc::ClientContext>();
    if (context_.deadline != absl::InfiniteFuture()) {
      grpc_->set_deadline(absl::ToChronoTime(context_.deadline));
    }
    reader_ = (context_.stub->*method_)(grpc_.get(), request);
  }

  // OK: the stream may be opened again.
  absl::Status WaitToResume(const absl::Status& status) {
    if (absl::IsDeadlineExceeded(status) && absl::Now() >= context_.deadline) {
      return absl::DeadlineExceededError("the time given for waiting is over");
    }
    if (!IsInterruption(status)) return status;
    const bool is_first = interrupted_since_ == absl::InfiniteFuture();
    if (is_first) interrupted_since_ = absl::Now();
    if (!IsTransportError(status)) *context_.was_answered = true;
    const bool was_answered = *context_.was_answered;
    const absl::Duration patience = Patience(status, *context_.address, was_answered,
                                             *context_.options, context_.options->stream_patience);
    if (is_first && patience > absl::ZeroDuration() && context_.options->on_interruption) {
      context_.options->on_interruption(Interruption(status, *context_.address, was_answered),
                                        patience);
    }
    const absl::Time give_up = interrupted_since_ + patience;
    if (backoff_.Wait(std::min(give_up, context_.deadline), RetryDelay(status)))
      return absl::OkStatus();
    if (context_.deadline < give_up) {
      return absl::DeadlineExceededError("the time given for waiting is over");
    }
    return Explain(status, *context_.address, absl::ZeroDuration());
  }

  const StreamContext context_;
  const Method method_;
  Backoff backoff_;
  absl::Time interrupted_since_ = absl::InfiniteFuture();
  std::unique_ptr<grpc::ClientContext> grpc_;  // must outlive its reader
  std::unique_ptr<Reader> reader_;
};

class WatchReaderImpl final : public WatchReader {
 public:
  WatchReaderImpl(StreamContext context, v1::WatchJobsRequest request,
                  std::function<void()> on_sign_of_life)
      : request_(std::move(request)),
        on_sign_of_life_(std::move(on_sign_of_life)),
        stream_(context, &v1::Jobs::Stub::WatchJobs) {}

  absl::StatusOr<std::optional<v1::WatchJobsResponse>> Next() override {
    while (true) {
      absl::StatusOr<std::optional<v1::WatchJobsResponse>> next = stream_.Next(request_);
      if (!next.ok() || !next->has_value()) return next;
      const v1::WatchJobsResponse& step = **next;
      if (step.job_id() == 0) {
        if (step.has_sequence()) Advance(static_cast<int64_t>(step.sequence()));
        if (on_sign_of_life_) on_sign_of_life_();
        continue;
      }
      const auto sequence = static_cast<int64_t>(step.transition().sequence());
      if (sequence <= request_.after_sequence()) continue;
      Advance(sequence);
      return next;
    }
  }

 private:
  void Advance(int64_t sequence) {
    request_.set_after_sequence(std::max(request_.after_sequence(), sequence));
  }

  v1::WatchJobsRequest request_;  // for what has not been seen yet
  const std::function<void()> on_sign_of_life_;
  Resumed<v1::WatchJobsRequest, v1::WatchJobsResponse> stream_;
};

class LogReaderImpl final : public LogReader {
 public:
  LogReaderImpl(StreamContext context, v1::ReadLogRequest request)
      : request_(std::move(request)), stream_(context, &v1::Jobs::Stub::ReadLog) {}

  absl::StatusOr<std::optional<v1::ReadLogResponse>> Next() override {
    if (ended_) return std::optional<v1::ReadLogResponse>();
    while (true) {
      absl::StatusOr<std::optional<v1::ReadLogResponse>> next = stream_.Next(request_);
      if (!next.ok() || !next->has_value()) return next;
      v1::ReadLogResponse& piece = **next;
      ended_ = piece.end() != v1::LOG_END_UNSPECIFIED;
      DropSeen(&piece);
      if (piece.data().empty() && !ended_) continue;
      request_.set_offset(piece.offset() + piece.data().size());
      return next;
    }
  }

 private:
  // A piece may begin before what was asked for, if the archive's own pieces do.
  void DropSeen(v1::ReadLogResponse* piece) const {
    if (piece->offset() >= request_.offset()) return;
    const uint64_t seen = request_.offset() - piece->offset();
    piece->mutable_data()->erase(0, seen);
    piece->set_offset(request_.offset());
  }

  v1::ReadLogRequest request_;  // for what has not been read yet
  Resumed<v1::ReadLogRequest, v1::ReadLogResponse> stream_;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<WatchReader> NewWatchReader(StreamContext context, v1::WatchJobsRequest request,
                                            std::function<void()> on_sign_of_life) {
  return std::make_unique<WatchReaderImpl>(context, std::move(request), std::move(on_sign_of_life));
}

std::unique_ptr<LogReader> NewLogReader(StreamContext context, v1::ReadLogRequest request) {
  return std::make_unique<LogReaderImpl>(context, std::move(request));
}

}  // namespace muster::client
