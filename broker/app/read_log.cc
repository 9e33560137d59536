#include "broker/app/read_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "broker/app/project_limits.h"
#include "broker/app/rights.h"
#include "broker/app/run_logs.h"
#include "broker/logs/archive.h"
#include "broker/logs/rank_reader.h"
#include "broker/logs/tail_search.h"
#include "contract/errors.h"

namespace muster::broker {
namespace {

// The most bytes of one message, as the API promises.
constexpr size_t kPieceBytes = 64 << 10;
// This many bytes are read ahead of the client, so that the disk and the network work at the same
// time.
constexpr size_t kBytesPerStep = 4 * kPieceBytes;
constexpr size_t kLogPiecesPerStep = 64;
// A search for the last lines is split into steps of this size, so that other streams get their
// turn.
constexpr size_t kSearchedPerStep = 4 << 20;
// The API states this bound.
constexpr uint32_t kMaxTailLines = 100'000;
// The time that a follower waits for the rest of a line before the other output's bytes go ahead. A
// line that was only cut on its way is whole long before; a line that a program left unfinished may
// stay so for hours.
constexpr std::chrono::seconds kLinePatience{1};

std::vector<v1::LogStream> StreamsOf(const v1::ReadLogRequest& request) {
  if (request.stream() != v1::LOG_STREAM_UNSPECIFIED) return {request.stream()};
  return {v1::LOG_STREAM_STDOUT, v1::LOG_STREAM_STDERR};
}

void CheckPositions(const v1::ReadLogRequest& request, contract::FieldErrors* errors) {
  std::set<v1::LogStream> seen;
  for (int i = 0; i < request.positions_size(); ++i) {
    const v1::LogStream stream = request.positions(i).stream();
    const std::string field = fmt::format("positions[{}].stream", i);
    if (!v1::LogStream_IsValid(stream) || stream == v1::LOG_STREAM_UNSPECIFIED) {
      errors->Add(field, fmt::format("{} is not a stream; use STDOUT (1) or STDERR (2)",
                                     static_cast<int>(stream)));
    } else if (request.stream() != v1::LOG_STREAM_UNSPECIFIED && request.stream() != stream) {
      errors->Add(field, "is not the stream that is asked for");
    } else if (!seen.insert(stream).second) {
      errors->Add(field, "stands here for the second time");
    }
  }
}

absl::Status ValidateRead(const v1::ReadLogRequest& request) {
  contract::FieldErrors errors;
  if (request.job_id() == 0) errors.Add("job_id", "is required");
  if (!v1::LogStream_IsValid(request.stream())) {
    errors.Add("stream", fmt::format("{} is not a stream; use STDOUT (1), STDERR (2) or 0 for both",
                                     static_cast<int>(request.stream())));
  }
  if (request.tail_lines() > kMaxTailLines) {
    errors.Add("tail_lines",
               fmt::format("{}; the most is {}", request.tail_lines(), kMaxTailLines));
  }
  if (request.tail_lines() > 0 && !request.positions().empty()) {
    errors.Add("positions", "do not go together with tail_lines; give one of them");
  }
  CheckPositions(request, &errors);
  return errors.ToStatus();
}

class ReadingLog final : public LogSource {
 public:
  ReadingLog(const Services& services, const Principal& principal, store::Scope scope,
             const v1::ReadLogRequest& request)
      : services_(services),
        scope_(std::move(scope)),
        request_(request),
        streams_(StreamsOf(request)),
        rights_(services, principal, UseCase::kReadLogs, scope_),
        rank_{.job = request.job_id(), .run = 0, .rank = request.rank()} {}

  void Hook(const std::shared_ptr<Watcher>& stream) override {
    stream_ = stream;
    watcher_ = stream.get();
    if (request_.follow()) services_.watches->Add(stream, {rank_.job});
  }

  void Unhook() override {
    if (request_.follow()) services_.watches->Remove(watcher_, {rank_.job});
    follows_.clear();
  }

  Pulled Next() override {
    Pulled result;
    absl::Status status = rights_.Check();
    if (status.ok()) status = Read(&result);
    if (!status.ok()) result.final_status = std::move(status);
    return result;
  }

  bool IsDue() const override { return is_due_; }

 private:
  absl::Status Read(Pulled* result) {
    is_due_ = false;
    // Look at the run before its logs: what it says of them then holds for all bytes that are read.
    if (!run_.has_ended || !run_.logs_complete) {
      if (absl::Status status = Look(); !status.ok()) return status;
    }
    if (rank_.run == 0) {
      if (run_.has_ended || !request_.follow()) {
        FinishAll(run_.has_ended ? v1::LOG_END_COMPLETE : v1::LOG_END_MORE_LATER, result);
      }
      return absl::OkStatus();
    }
    if (!reader_) {
      if (absl::Status status = Open(); !status.ok()) return status;
    }
    if (search_) return SearchTail(result);
    return ReadPieces(result);
  }

  // Reads what the store knows of the run.
  absl::Status Look() {
    const bool had_ended = run_.has_ended;
    const uint32_t wanted = rank_.run != 0 ? rank_.run : request_.run();
    const auto run = LookAtRun(*services_.store, scope_, rank_.job, wanted);
    if (!run.ok()) return run.status();
    if (request_.rank() >= run->ranks) {
      return NoSuchRank(rank_.job, request_.rank(), run->ranks);
    }
    run_ = *run;
    rank_.run = run_.run;
    if (run_.has_ended && !had_ended) grace_begin_ = std::chrono::steady_clock::now();
    return absl::OkStatus();
  }

  absl::Status Open() {
    for (const v1::LogStream stream : streams_) {
      if (!request_.follow()) break;
      follows_.push_back(services_.archive->StartFollow(rank_.Log(stream), [weak = stream_] {
        if (const auto self = weak.lock()) self->Wake();
      }));
    }
    reader_.emplace(services_.archive, rank_, streams_);
    for (const v1::LogPosition& position : request_.positions()) {
      if (absl::Status status = CheckPosition(position); !status.ok()) return status;
      reader_->Seek(position.stream(), position.offset());
    }
    if (request_.tail_lines() > 0) {
      search_.emplace(services_.archive, rank_, streams_, request_.tail_lines());
    }
    return absl::OkStatus();
  }

  absl::Status CheckPosition(const v1::LogPosition& position) const {
    const auto log = services_.archive->Look(rank_.Log(position.stream()));
    if (!log.ok()) return log.status();
    if (position.offset() <= log->size || log->end == v1::LOG_END_EXPIRED) return absl::OkStatus();
    // A follower may be ahead of the log's end after a crash.
    const v1::LogEnd end = EndOfLog(log->end, run_, /*is_grace_over=*/false);
    if (request_.follow() && end == v1::LOG_END_MORE_LATER) return absl::OkStatus();
    return contract::Error(
        absl::StatusCode::kOutOfRange, "OFFSET_BEYOND_END",
        fmt::format("offset {} is beyond the {} bytes of the log", position.offset(), log->size));
  }

  absl::Status SearchTail(Pulled* result) {
    result->more = true;
    const absl::StatusOr<bool> done = search_->Continue(kSearchedPerStep);
    if (!done.ok() || !*done) return done.status();
    for (const v1::LogStream stream : streams_) {
      const uint64_t begin = search_->Begin(stream);
      reader_->Seek(stream, begin);
      AddEmpty(stream, begin, result);
    }
    search_.reset();
    return absl::OkStatus();
  }

  absl::Status ReadPieces(Pulled* result) {
    size_t bytes = 0;
    while (bytes < kBytesPerStep && result->messages.size() < kLogPiecesPerStep) {
      auto piece = reader_->Next(kPieceBytes, MayTear());
      if (!piece.ok()) return piece.status();
      if (!piece->has_value()) {
        if (reader_->holds_back()) {
          if (!held_since_) held_since_ = std::chrono::steady_clock::now();
          is_due_ = true;
        } else {
          AtEnd(result);
        }
        return absl::OkStatus();
      }
      held_since_.reset();
      bytes += (*piece)->data.size();
      Add(**std::move(piece), result);
    }
    result->more = true;
    return absl::OkStatus();
  }

  bool MayTear() const {
    if (!request_.follow()) return true;
    return held_since_ && std::chrono::steady_clock::now() - *held_since_ >= kLinePatience;
  }

  void Add(logs::Piece piece, Pulled* result) {
    v1::ReadLogResponse message;
    message.set_stream(piece.stream);
    message.set_offset(piece.offset);
    message.set_data(std::move(piece.data));
    result->messages.push_back(std::move(message));
    grace_begin_ = std::chrono::steady_clock::now();
  }

  static void AddEmpty(v1::LogStream stream, uint64_t offset, Pulled* result) {
    v1::ReadLogResponse message;
    message.set_stream(stream);
    message.set_offset(offset);
    result->messages.push_back(std::move(message));
  }

  // Handles a stream that has no byte now.
  void AtEnd(Pulled* result) {
    std::vector<v1::LogEnd> ends;
    bool is_over = true;
    for (const v1::LogStream stream : streams_) {
      ends.push_back(EndOfLog(reader_->End(stream), run_, run_.has_ended && IsGraceOver()));
      is_over = is_over && ends.back() != v1::LOG_END_MORE_LATER;
    }
    if (!is_over && request_.follow()) {
      // No wake announces the end of the grace, or the completion of logs that never began.
      is_due_ = run_.has_ended;
      return;
    }
    for (size_t i = 0; i < streams_.size(); ++i) Finish(streams_[i], ends[i], result);
    result->final_status = absl::OkStatus();
  }

  // True if the cluster has had its time to deliver the rest. The run may have ended long before
  // this broker heard of it, on a node whose clock is wrong. For a follower the grace therefore
  // begins when this stream hears of the end, and again with each piece. A reader that does not
  // follow cannot wait; for it the node's clock gives the likelier answer.
  bool IsGraceOver() const {
    if (!request_.follow()) return services_.now() - run_.end_time > services_.log_grace;
    return absl::FromChrono(std::chrono::steady_clock::now() - grace_begin_) > services_.log_grace;
  }

  // Sets the end on the stream's last message.
  void Finish(v1::LogStream stream, v1::LogEnd end, Pulled* result) {
    const auto is_of_stream = [stream](const v1::ReadLogResponse& message) {
      return message.stream() == stream;
    };
    auto& messages = result->messages;
    auto last = std::find_if(messages.rbegin(), messages.rend(), is_of_stream);
    if (last == messages.rend()) {
      AddEmpty(stream, reader_ ? reader_->Position(stream) : 0, result);
      last = messages.rbegin();
    }
    last->set_end(end);
  }

  void FinishAll(v1::LogEnd end, Pulled* result) {
    for (const v1::LogStream stream : streams_) Finish(stream, end, result);
    result->final_status = absl::OkStatus();
  }

  const Services services_;
  const store::Scope scope_;
  const v1::ReadLogRequest request_;
  const std::vector<v1::LogStream> streams_;  // one or two outputs, standard output first
  // Next changes the members below, and so does Unhook after the last Next.
  StreamRights rights_;
  logs::RankId rank_;  // its run is 0 until the job has one
  RunFacts run_;
  std::chrono::steady_clock::time_point grace_begin_;
  std::optional<logs::RankReader> reader_;
  std::optional<logs::TailSearch> search_;  // set until the last lines are found
  std::optional<std::chrono::steady_clock::time_point>
      held_since_;                    // since when bytes wait for the end of a line
  std::atomic<bool> is_due_ = false;  // there may be something to do without a wake
  std::weak_ptr<Watcher> stream_;
  const Watcher* watcher_ = nullptr;  // stream_, used by Unhook only
  std::vector<std::unique_ptr<logs::Follow>> follows_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LogSource>> ReadLog(const Principal& principal,
                                                   const Services& services,
                                                   const v1::ReadLogRequest& request) {
  absl::StatusOr<store::Scope> scope = Authorize(principal, UseCase::kReadLogs);
  if (!scope.ok()) return scope.status();
  if (absl::Status status = ValidateRead(request); !status.ok()) return status;
  return std::make_unique<ReadingLog>(services, principal, *std::move(scope), request);
}

}  // namespace muster::broker
