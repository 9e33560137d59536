// Brings one log into the archive: knows what was sent, what the archive has, and what comes next.
//
// Owner: the log shipper's thread. The archive answers each chunk once and in order. An answer
// below what was expected means that it did not take the chunk, and then it takes none of those
// behind it either.
#ifndef MUSTER_AGENTS_CORE_LOG_TAIL_H_
#define MUSTER_AGENTS_CORE_LOG_TAIL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "agents/core/backend.h"
#include "agents/core/log_file.h"
#include "muster/agent/v1/log_link.pb.h"

namespace muster::agents {

// The protocol's bound.
inline constexpr size_t kMaxChunkBytes = 64 << 10;

class LogTail {
 public:
  // `remote` says where the file is read instead of on this machine; it must outlive this object.
  LogTail(std::string run_key, const LogSource& source, RemoteLogs* remote = nullptr);

  // Asks the archive where to go on, on a new stream.
  void Restart();
  // Says that no byte will be added to the file.
  void SetEnded();

  // Returns the next chunk, or nothing if the answer to an earlier one is needed first, or the file
  // has no more bytes now. An error: the file cannot be read; try again later.
  absl::StatusOr<std::optional<agent::v1::LogChunk>> Next();
  // The chunk that Next gave last was sent.
  void Sent(const agent::v1::LogChunk& chunk);
  void OnAnswer(const agent::v1::PushResponse& answer);

  // Returns whether only an answer can bring this log further.
  bool awaits_answer() const;
  // Next would read the file.
  bool wants_to_read() const {
    return phase_ == Phase::kStream && !awaits_answer() && !discarding_;
  }
  // The archive has it all.
  bool complete() const { return phase_ == Phase::kComplete; }
  uint64_t bytes_in_flight() const { return bytes_in_flight_; }
  size_t chunks_in_flight() const { return in_flight_.size(); }

  LogFile& file() { return file_; }
  const LogFile& file() const { return file_; }
  // Returns the offset at which the next read begins.
  uint64_t position() const { return position_; }
  const std::string& run_key() const { return run_key_; }

 private:
  // kAsk, kRewind and kEnd hold nothing back but wait until every chunk in flight is answered.
  enum class Phase { kAsk, kAsked, kStream, kRewind, kEnd, kComplete };
  struct InFlight {
    uint64_t end = 0;  // the offset behind its last byte
    uint64_t bytes = 0;
  };

  agent::v1::LogChunk Chunk(std::string data, bool end) const;

  const std::string run_key_;
  const uint32_t rank_;
  const v1::LogStream stream_;
  LogFile file_;
  Phase phase_ = Phase::kAsk;
  bool ended_ = false;
  bool discarding_ = false;
  uint64_t position_ = 0;  // of the next byte to send
  uint64_t bytes_in_flight_ = 0;
  std::deque<InFlight> in_flight_;
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_LOG_TAIL_H_
