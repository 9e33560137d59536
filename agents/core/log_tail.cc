#include "agents/core/log_tail.h"

#include <algorithm>
#include <utility>

namespace muster::agents {
namespace {

// Limit for one log, so that a flood in one leaves room for the others.
constexpr uint64_t kMaxBytesInFlight = 4 << 20;
constexpr size_t kMaxTailChunksInFlight = 256;

}  // namespace

LogTail::LogTail(std::string run_key, const LogSource& source, RemoteLogs* remote)
    : run_key_(std::move(run_key)),
      rank_(source.rank),
      stream_(source.stream),
      file_(source.path, remote) {}

void LogTail::Restart() {
  if (phase_ == Phase::kComplete) return;
  phase_ = Phase::kAsk;
  in_flight_.clear();
  bytes_in_flight_ = 0;
}

void LogTail::SetEnded() {
  ended_ = true;
  file_.Close();  // to see its true end
}

bool LogTail::awaits_answer() const {
  switch (phase_) {
    case Phase::kAsk:
      return false;
    case Phase::kStream:
      return bytes_in_flight_ >= kMaxBytesInFlight || in_flight_.size() >= kMaxTailChunksInFlight;
    case Phase::kAsked:
    case Phase::kRewind:
    case Phase::kEnd:
    case Phase::kComplete:
      return true;
  }
  return true;
}

absl::StatusOr<std::optional<agent::v1::LogChunk>> LogTail::Next() {
  if (awaits_answer()) return std::nullopt;
  if (phase_ == Phase::kAsk) return Chunk("", false);
  if (discarding_) {
    if (!ended_) return std::nullopt;
    // The log's true end tells the archive that bytes are missing.
    absl::StatusOr<uint64_t> size = file_.Size();
    if (!size.ok()) return size.status();
    position_ = std::max(position_, *size);
    return Chunk("", true);
  }
  absl::StatusOr<std::string> data = file_.Read(position_, kMaxChunkBytes);
  if (!data.ok()) return data.status();
  // A short read of a file that no longer grows is its end.
  const bool end = ended_ && data->size() < kMaxChunkBytes;
  if (data->empty() && !end) return std::nullopt;
  return Chunk(*std::move(data), end);
}

agent::v1::LogChunk LogTail::Chunk(std::string data, bool end) const {
  agent::v1::LogChunk chunk;
  chunk.set_run_key(run_key_);
  chunk.set_rank(rank_);
  chunk.set_stream(stream_);
  chunk.set_offset(position_);
  chunk.set_data(std::move(data));
  chunk.set_end(end);
  return chunk;
}

void LogTail::Sent(const agent::v1::LogChunk& chunk) {
  const uint64_t bytes = chunk.data().size();
  position_ = chunk.offset() + bytes;
  in_flight_.push_back({position_, bytes});
  bytes_in_flight_ += bytes;
  if (phase_ == Phase::kAsk) {
    phase_ = Phase::kAsked;
  } else if (chunk.end()) {
    phase_ = Phase::kEnd;
  }
}

void LogTail::OnAnswer(const agent::v1::PushResponse& answer) {
  if (in_flight_.empty()) return;  // a broker that answers unasked
  const InFlight answered = in_flight_.front();
  in_flight_.pop_front();
  bytes_in_flight_ -= answered.bytes;
  if (answer.complete()) {
    phase_ = Phase::kComplete;
    file_.Close();
    return;
  }
  // Bytes that the archive no longer wants need not be read; the end goes where its answer says.
  const bool begins_to_discard = answer.discarding() && !discarding_;
  discarding_ = answer.discarding();
  const bool as_expected = answer.next_offset() == answered.end && !begins_to_discard;
  if (phase_ == Phase::kAsked) {
    position_ = answer.next_offset();
    phase_ = Phase::kStream;
  } else if (!as_expected || (phase_ == Phase::kEnd && in_flight_.empty())) {
    phase_ = Phase::kRewind;
  }
  if (phase_ != Phase::kRewind) return;
  position_ = answer.next_offset();
  if (in_flight_.empty()) phase_ = Phase::kStream;
}

}  // namespace muster::agents
