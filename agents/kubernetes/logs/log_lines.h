// Reads a container's log as the API server tells it with `timestamps=true`, and finds what of it
// is not known yet. Pure.
//
// The node puts the time before each line, and nothing at the end of a last line that has none. A
// line of more than 16 KiB is several records at the node but one here, with the first one's time.
// If only one of the two streams is asked for, the node looks at the other one's records as well to
// tell where a line begins: so a time may be missing there, or come after 16 KiB of a line.
#ifndef MUSTER_AGENTS_KUBERNETES_LOGS_LOG_LINES_H_
#define MUSTER_AGENTS_KUBERNETES_LOGS_LOG_LINES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace muster::kubernetes {

// Marks the part of a container's log that is known: all up to some byte of one line.
struct LogPosition {
  static constexpr int64_t kNoTime = std::numeric_limits<int64_t>::min();

  int64_t time = kNoTime;    // of that line, in nanoseconds since 1970
  int64_t latest = kNoTime;  // of all lines up to there: two streams may be a little out of order
  uint64_t count = 0;        // lines with exactly that time, up to that one; 0: nothing is known
  uint64_t bytes = 0;        // of the line that are known, its newline included

  bool operator==(const LogPosition&) const = default;
};

// Reads "2026-11-21T14:53:20.862802024Z " or "...+01:00 " at the beginning of the text, as its
// length and time; 0 if it does not begin so. `may_become` says whether more text may make it one.
size_t ReadStamp(std::string_view text, int64_t* time, bool* may_become);

// One answer of the server. Memory is bounded whatever comes.
class LogLines {
 public:
  // The answer is asked for from `known` on, or from a little before. `is_split`: only one of the
  // two streams was asked for.
  LogLines(const LogPosition& known, bool is_split);

  // Takes the next bytes; what is new of them, without times, is appended to `news`.
  void Take(std::string_view bytes, std::string* news);
  // The answer has ended by itself. One that was cut just ends.
  void End(std::string* news);

  // Returns the position with all news so far.
  const LogPosition& position() const { return position_; }
  // Returns whether what was known is in the answer, or nothing was.
  bool has_found() const { return !is_searching_ && !has_gap_; }
  // True if the known lines are not there any more: lines before the news may be missing.
  bool has_gap() const { return has_gap_; }
  bool has_news() const { return has_news_; }
  // Returns the node's words instead of a log, or at its end: why it is not read (on). Not output.
  const std::string& words() const { return words_; }

 private:
  enum class Place { kLineStart, kFragmentStart, kText, kWords };

  // Decides about what is held back; false: more is needed.
  bool Decide(bool is_end, std::string* news);
  size_t TakeText(std::string_view bytes, std::string* news);
  size_t TakeWords(std::string_view bytes);
  // Counts the lines with that time in this answer, and the one that begins.
  uint64_t CountOf(int64_t time);
  void Begin(int64_t time);
  void Emit(std::string_view bytes, std::string* news);

  const LogPosition known_;
  const bool is_split_;
  Place place_ = Place::kLineStart;
  // The beginning of a line, until it is clear whether it is a time or a node's words.
  std::string held_;
  // The line that is being read.
  int64_t time_ = LogPosition::kNoTime;
  uint64_t count_ = 0;
  uint64_t bytes_ = 0;
  uint64_t fragment_bytes_ = 0;  // since the last time that was read
  bool has_begun_ = false;
  bool is_skipped_ = false;
  uint64_t to_skip_ = 0;  // bytes of it that are known

  // Lines with the same time may have a few others between them.
  struct Times {
    int64_t time = LogPosition::kNoTime;
    uint64_t count = 0;
  };
  std::array<Times, 16> recent_;
  size_t next_recent_ = 0;

  bool is_searching_;
  bool has_gap_ = false;
  bool has_news_ = false;
  LogPosition position_;
  std::string words_;
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_LOGS_LOG_LINES_H_
