#include "broker/rpc/read_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "absl/time/clock.h"
#include "broker/logs/archive.h"
#include "broker/rpc/pull_stream.h"
#include "broker/store/store.h"
#include "contract/errors.h"
#include "contract/roles.h"
#include "contract/states.h"
#include "google/protobuf/util/time_util.h"

namespace muster::broker {
namespace {

// The most bytes of one message; the API promises no more.
constexpr size_t kPieceBytes = 64 << 10;
// Read ahead of what the client has taken, so that the disk and the network work at the same time.
constexpr int kPiecesPerStep = 4;

absl::Time ToTime(const google::protobuf::Timestamp& time) {
  return absl::FromUnixNanos(google::protobuf::util::TimeUtil::TimestampToNanoseconds(time));
}

absl::Status Validate(const v1::ReadLogRequest& request) {
  contract::FieldErrors errors;
  if (request.job_id() == 0) errors.Add("job_id", "is required");
  if (!v1::LogStream_IsValid(request.stream())) {
    errors.Add("stream", fmt::format("{} is not a stream; use STDOUT (1) or STDERR (2)",
                                     static_cast<int>(request.stream())));
  }
  return errors.ToStatus();
}

class LogReadStream final : public PullStream<v1::ReadLogResponse> {
 public:
  LogReadStream(const Context& context, const v1::ReadLogRequest& request)
      : PullStream(context), request_(request), offset_(request.offset()) {
    log_.job = request.job_id();
    log_.stream =
        request.stream() == v1::LOG_STREAM_UNSPECIFIED ? v1::LOG_STREAM_STDOUT : request.stream();
    log_.rank = request.rank();
  }

  // Wakes may come from here on.
  void Hook() {
    if (request_.follow()) context_.watches->Add(shared_from_this(), {log_.job});
  }

 private:
  Result Step() override {
    Result result;
    absl::Status status = Read(&result);
    if (!status.ok()) result.final_status = std::move(status);
    return result;
  }

  absl::Status Read(Result* result) {
    // The run is looked at before its log is: what it says of the log then holds for all that is
    // read.
    if (!ended_ || !logs_complete_) {
      if (absl::Status status = Look(); !status.ok()) return status;
    }
    if (log_.run == 0) {
      if (ended_) {
        Finish(v1::LOG_END_COMPLETE, result);
      } else if (!request_.follow()) {
        Finish(v1::LOG_END_MORE_LATER, result);
      }
      return absl::OkStatus();
    }
    if (request_.follow() && !follow_) FollowLog();
    for (int i = 0; i < kPiecesPerStep; ++i) {
      auto piece = context_.archive->Read(log_, offset_, kPieceBytes);
      if (!piece.ok()) return piece.status();
      const v1::LogEnd end = piece->end;
      if (!piece->data.empty()) Add(*std::move(piece), result);
      if (end == v1::LOG_END_UNSPECIFIED) continue;
      AtEnd(end, result);
      return absl::OkStatus();
    }
    result->more = true;
    return absl::OkStatus();
  }

  // What the store knows of the run.
  absl::Status Look() {
    const absl::StatusOr<v1::Job> job = context_.store->GetJob(log_.job);
    if (!job.ok()) return job.status();
    if (request_.run() > static_cast<uint32_t>(job->runs_size())) {
      return contract::Error(absl::StatusCode::kNotFound, "NO_SUCH_RUN",
                             fmt::format("job {} has had {} runs; there is no run {}", log_.job,
                                         job->runs_size(), request_.run()));
    }
    if (const uint32_t ranks = contract::RankCount(job->spec()); request_.rank() >= ranks) {
      return contract::BadField("rank", fmt::format("{}; job {} has {} ranks, beginning at 0",
                                                    request_.rank(), log_.job, ranks));
    }
    if (log_.run == 0) {
      log_.run = request_.run() != 0 ? request_.run() : static_cast<uint32_t>(job->runs_size());
    }
    if (log_.run == 0) {
      ended_ = contract::IsTerminal(job->state());
      return absl::OkStatus();
    }
    const v1::Run& run = job->runs(static_cast<int>(log_.run) - 1);
    logs_complete_ = run.logs_complete();
    if (ended_ || !contract::IsTerminal(run.state())) return absl::OkStatus();
    ended_ = true;
    end_time_ = ToTime(run.has_end_time() ? run.end_time() : job->end_time());
    grace_begin_ = SteadyClock::now();
    return absl::OkStatus();
  }

  void FollowLog() {
    follow_ = context_.archive->StartFollow(log_, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->Wake();
    });
  }

  void Add(logs::ReadResult piece, Result* result) {
    offset_ = piece.offset + piece.data.size();
    v1::ReadLogResponse message;
    message.set_offset(piece.offset);
    message.set_data(std::move(piece.data));
    result->messages.push_back(std::move(message));
    grace_begin_ = SteadyClock::now();
  }

  // No byte follows now.
  void AtEnd(v1::LogEnd end, Result* result) {
    if (end != v1::LOG_END_MORE_LATER) return Finish(end, result);
    if (ended_ && logs_complete_) return Finish(v1::LOG_END_COMPLETE, result);
    if (ended_ && IsGraceOver()) return Finish(v1::LOG_END_INCOMPLETE, result);
    if (!request_.follow()) return Finish(v1::LOG_END_MORE_LATER, result);
    awaits_rest_ = ended_;
  }

  // Whether the cluster has had its time to deliver the rest. The run may have ended long before
  // this broker heard of it, on a node whose clock is wrong: for a follower the grace begins when
  // this stream hears of the end, and again with each piece. One who does not follow cannot wait;
  // the node's clock tells which answer is the likelier.
  bool IsGraceOver() const {
    if (!request_.follow()) return absl::Now() - end_time_ > context_.log_grace;
    return absl::FromChrono(SteadyClock::now() - grace_begin_) > context_.log_grace;
  }

  void Finish(v1::LogEnd end, Result* result) {
    if (result->messages.empty()) {
      v1::ReadLogResponse message;
      message.set_offset(offset_);
      result->messages.push_back(std::move(message));
    }
    result->messages.back().set_end(end);
    result->final_status = absl::OkStatus();
  }

  // The end of the grace, and the completion of logs that never began, come without a wake.
  bool IsDue() override { return awaits_rest_; }

  void Unhook() override {
    if (request_.follow()) context_.watches->Remove(this, {log_.job});
    follow_.reset();
  }

  const v1::ReadLogRequest request_;
  // A Step changes these, and Unhook after the last of them.
  logs::LogId log_;
  uint64_t offset_;
  bool ended_ = false;  // the run; the job, if it never had one
  bool logs_complete_ = false;
  absl::Time end_time_;  // of the run, once it has ended, by the clock of its node
  SteadyClock::time_point grace_begin_;
  std::atomic<bool> awaits_rest_ = false;
  std::unique_ptr<logs::Follow> follow_;
};

}  // namespace

grpc::ServerWriteReactor<v1::ReadLogResponse>* NewLogReadStream(const Context& context,
                                                                const v1::ReadLogRequest& request) {
  auto stream = std::make_shared<LogReadStream>(context, request);
  LogReadStream* reactor = stream.get();
  stream->Hook();
  stream->Begin(Validate(request));
  return reactor;
}

}  // namespace muster::broker
