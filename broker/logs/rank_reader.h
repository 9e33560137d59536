// Reads one output of a rank, or both in the order in which their bytes came.
//
// A line is not torn by the other output if its rest is there; a caller that waits for more may
// also wait for the rest of such a line. Belongs to one thread at a time.
#ifndef MUSTER_BROKER_LOGS_RANK_READER_H_
#define MUSTER_BROKER_LOGS_RANK_READER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "broker/logs/archive.h"

namespace muster::logs {

struct Piece {
  v1::LogStream stream = v1::LOG_STREAM_STDOUT;
  uint64_t offset = 0;
  std::string data;
};

class RankReader {
 public:
  // Reads from the beginning of each stream unless told otherwise.
  RankReader(const Archive* archive, RankId rank, absl::Span<const v1::LogStream> streams);

  void Seek(v1::LogStream stream, uint64_t offset);

  // Returns the next bytes, up to max_bytes; nothing if there are none now, or they are held back.
  // `may_tear`: bytes of one output may follow an unfinished line of the other one.
  absl::StatusOr<std::optional<Piece>> Next(size_t max_bytes, bool may_tear);

  // Tell, after a Next that returned nothing, whether bytes wait for the end of a line, and how a
  // stream ended.
  bool holds_back() const { return holds_back_; }
  v1::LogEnd End(v1::LogStream stream) const;

  uint64_t Position(v1::LogStream stream) const;

 private:
  struct Output {
    v1::LogStream stream;
    uint64_t position = 0;
    uint64_t goal = 0;  // how far it goes before it is the other output's turn
    LogFacts facts;
    bool is_within_line = false;  // the last bytes given did not end with a line end
  };

  const Output& Find(v1::LogStream stream) const;
  absl::Status LookAtLogs();
  // Returns the output whose bytes come next; null if none.
  absl::StatusOr<Output*> Turn();
  absl::StatusOr<const OrderMark*> NextMark();
  absl::StatusOr<std::optional<Piece>> Give(Output* output, uint64_t bytes, bool only_the_line);

  const Archive* const archive_;
  const RankId rank_;
  std::vector<Output> outputs_;  // one or two, standard output first
  Output* last_ = nullptr;       // the output whose line is unfinished
  bool holds_back_ = false;
  std::deque<OrderMark> marks_;  // read ahead
  uint64_t next_mark_ = 0;
};

}  // namespace muster::logs

#endif  // MUSTER_BROKER_LOGS_RANK_READER_H_
