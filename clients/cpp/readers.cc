#include "clients/cpp/readers.h"

#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "clients/cpp/bearer.h"
#include "clients/cpp/errors.h"
#include "clients/cpp/renewal.h"
#include "contract/errors.h"
#include "rpc/backoff.h"

namespace muster::client {
namespace {

// Returns whether asking again from where the stream broke off may help.
bool IsInterruption(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsAborted(status) ||
         (absl::IsResourceExhausted(status) && contract::GetRetryDelay(status).has_value());
}

// One stream after another of one method, until it ends well, or badly for good.
template <typename Request, typename Response>
class Resumed {
 public:
  using Reader = grpc::ClientReader<Response>;
  using Method = std::unique_ptr<Reader> (v1::JobsService::Stub::*)(grpc::ClientContext*,
                                                                    const Request&);

  Resumed(StreamContext context, Method method)
      : context_(context),
        method_(method),
        backoff_(context.options->first_backoff, context.options->max_backoff) {}

  ~Resumed() {
    if (!reader_) return;
    grpc_->TryCancel();
    reader_->Finish();
  }

  // Returns the next message; nothing if the stream has ended well. `resume` is the request for the
  // rest of it.
  absl::StatusOr<std::optional<Response>> Next(const Request& resume) {
    Response response;
    while (true) {
      if (!reader_) Open(resume);
      if (reader_->Read(&response)) {
        *context_.was_answered = true;
        interrupted_since_ = absl::InfiniteFuture();
        backoff_.Reset();
        renewal_.reset();
        return std::optional<Response>(std::move(response));
      }
      const absl::Status status = EndOfCall(reader_->Finish());
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
    bearer_ = AddBearer(*context_.options, grpc_.get());
    reader_ = (context_.stub->*method_)(grpc_.get(), request);
  }

  // OK: the stream may be opened again.
  absl::Status WaitToResume(const absl::Status& status) {
    if (absl::IsDeadlineExceeded(status) && absl::Now() >= context_.deadline) {
      return absl::DeadlineExceededError("the deadline for waiting has passed");
    }
    if (absl::IsUnauthenticated(status) && context_.options->credential != nullptr) {
      if (!renewal_) renewal_.emplace(context_.options->credential.get());
      absl::Status renewed = renewal_->Await(bearer_);
      return renewed.ok() && renewal_->is_over() ? status : renewed;
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
      return absl::DeadlineExceededError("the deadline for waiting has passed");
    }
    return Explain(status, *context_.address, absl::ZeroDuration());
  }

  const StreamContext context_;
  const Method method_;
  rpc::Backoff backoff_;
  std::optional<Renewal> renewal_;  // since the last message
  std::string bearer_;              // of the present stream
  absl::Time interrupted_since_ = absl::InfiniteFuture();
  std::unique_ptr<grpc::ClientContext> grpc_;  // must outlive its reader
  std::unique_ptr<Reader> reader_;
};

class WatchReaderImpl final : public WatchReader {
 public:
  WatchReaderImpl(StreamContext context, v1::WatchJobsRequest request,
                  std::function<void()> on_heartbeat)
      : request_(std::move(request)),
        on_heartbeat_(std::move(on_heartbeat)),
        stream_(context, &v1::JobsService::Stub::WatchJobs) {}

  absl::StatusOr<std::optional<v1::JobChange>> Next() override {
    while (true) {
      while (next_ < message_.changes_size()) {
        v1::JobChange& change = *message_.mutable_changes(next_++);
        if (change.sequence() <= request_.after()) continue;  // seen already
        request_.set_after(change.sequence());
        return std::move(change);
      }
      absl::StatusOr<std::optional<v1::WatchJobsResponse>> message = stream_.Next(request_);
      if (!message.ok()) return message.status();
      if (!message->has_value()) return std::nullopt;
      message_ = std::move(**message);
      next_ = 0;
      if (!message_.has_heartbeat()) continue;
      request_.set_after(std::max(request_.after(), message_.heartbeat().sequence()));
      if (on_heartbeat_) on_heartbeat_();
    }
  }

 private:
  v1::WatchJobsRequest request_;  // for what has not been seen yet
  v1::WatchJobsResponse message_;
  int next_ = 0;  // of its changes
  const std::function<void()> on_heartbeat_;
  Resumed<v1::WatchJobsRequest, v1::WatchJobsResponse> stream_;
};

class LogReaderImpl final : public LogReader {
 public:
  LogReaderImpl(StreamContext context, v1::ReadLogRequest request)
      : request_(std::move(request)), stream_(context, &v1::JobsService::Stub::ReadLog) {
    if (request_.stream() != v1::LOG_STREAM_STDERR) going_on_.insert(v1::LOG_STREAM_STDOUT);
    if (request_.stream() != v1::LOG_STREAM_STDOUT) going_on_.insert(v1::LOG_STREAM_STDERR);
  }

  absl::StatusOr<std::optional<v1::ReadLogResponse>> Next() override {
    while (!going_on_.empty()) {
      absl::StatusOr<std::optional<v1::ReadLogResponse>> next = stream_.Next(request_);
      if (!next.ok() || !next->has_value()) return next;
      v1::ReadLogResponse& piece = **next;
      // A stream that was opened again says once more how an output ended.
      if (!going_on_.contains(piece.stream())) continue;
      if (NotesTailBegin(piece)) continue;
      v1::LogPosition* position = Position(piece.stream());
      DropSeen(position->offset(), &piece);
      position->set_offset(piece.offset() + piece.data().size());
      const bool ends = piece.end() != v1::LOG_END_UNSPECIFIED;
      if (ends) going_on_.erase(piece.stream());
      if (!piece.data().empty() || ends) return next;
    }
    return std::nullopt;
  }

 private:
  v1::LogPosition* Position(v1::LogStream stream) {
    for (v1::LogPosition& position : *request_.mutable_positions()) {
      if (position.stream() == stream) return &position;
    }
    v1::LogPosition* added = request_.add_positions();
    added->set_stream(stream);
    return added;
  }
  // A piece may begin before what was asked for, if the archive's own pieces do.
  static void DropSeen(uint64_t seen_up_to, v1::ReadLogResponse* piece) {
    if (piece->offset() >= seen_up_to) return;
    piece->mutable_data()->erase(0, seen_up_to - piece->offset());
    piece->set_offset(seen_up_to);
  }

  // The first messages say where the last lines begin. Until each stream has done so, one that is
  // opened again asks for the last lines once more.
  bool NotesTailBegin(const v1::ReadLogResponse& piece) {
    if (request_.tail_lines() == 0) return false;
    // There is no run to have a log.
    if (piece.end() != v1::LOG_END_UNSPECIFIED) return false;
    tail_begins_[piece.stream()] = piece.offset();
    if (tail_begins_.size() < going_on_.size()) return true;
    request_.clear_tail_lines();
    for (const auto& [stream, offset] : tail_begins_) Position(stream)->set_offset(offset);
    return true;
  }

  v1::ReadLogRequest request_;  // for what has not been read yet
  std::map<v1::LogStream, uint64_t> tail_begins_;
  std::set<v1::LogStream> going_on_;  // of those asked for
  Resumed<v1::ReadLogRequest, v1::ReadLogResponse> stream_;
};

}  // namespace

std::unique_ptr<WatchReader> NewWatchReader(StreamContext context, v1::WatchJobsRequest request,
                                            std::function<void()> on_heartbeat) {
  return std::make_unique<WatchReaderImpl>(context, std::move(request), std::move(on_heartbeat));
}

std::unique_ptr<LogReader> NewLogReader(StreamContext context, v1::ReadLogRequest request) {
  return std::make_unique<LogReaderImpl>(context, std::move(request));
}

}  // namespace muster::client
