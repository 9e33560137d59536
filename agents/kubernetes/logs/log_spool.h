// One output of one rank in a file of the agent's own, and beside it how far each container's log
// is in it.
//
// Bytes in the file are never taken back, because they may be in the archive already. If a process
// ends between writing output and writing how far it is, the next one reads that part again and
// compares it with what is there instead of writing it.
#ifndef MUSTER_AGENTS_KUBERNETES_LOGS_LOG_SPOOL_H_
#define MUSTER_AGENTS_KUBERNETES_LOGS_LOG_SPOOL_H_

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "agents/kubernetes/logs/log_lines.h"

namespace muster::kubernetes {

inline constexpr char kRotatedLine[] =
    "muster: part of the output may be missing here: the node has rotated its log away\n";

// One thread at a time may use it. It keeps no descriptor between calls: thousands of these are
// open at a time.
class LogSpool {
 public:
  // The position is in a file of this name with ".position" at its end, and containers that were
  // read long before in one with ".finished".
  explicit LogSpool(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  // Loads the files of an earlier process. Files that are not there, or cannot be read, are as
  // none.
  void Load();

  // The container whose log is being written, as Begin called it; empty if none.
  const std::string& source() const { return source_; }
  // Returns the position up to which the log is in the file.
  const LogPosition& position() const { return position_; }
  bool HasFinished(const std::string& source) const;

  // The next container's log begins here. Errors are those of the file system.
  absl::Status Begin(const std::string& source);
  // Appends the next output, with which it is known up to `after`; `has_gap`: after kRotatedLine.
  // RESOURCE_EXHAUSTED: the disk is full; nothing is lost if the same comes again.
  absl::Status Append(std::string_view news, const LogPosition& after, bool has_gap = false);
  // Writes a line of the agent's own, in a line of its own.
  absl::Status Say(std::string_view line);
  // The container's log is whole, or given up. An error: it will be read again by another process.
  absl::Status Finish();

 private:
  std::string EarlierPath() const { return path_ + ".finished"; }
  absl::Status Write(std::string_view bytes);
  absl::Status SavePosition() const;
  // Bytes that are in the file already and come again are left out; false: they differ.
  bool LeaveOutKnown(std::string_view* bytes);
  // Puts a newline before it if the file does not end a line at that offset.
  std::string InLineOfItsOwn(std::string_view line, uint64_t offset) const;

  const std::string path_;
  std::string source_;
  std::deque<std::string> finished_;  // the latest last
  std::set<std::string> earlier_;     // that finished before those
  LogPosition position_;
  uint64_t begin_ = 0;   // where the container's log begins in the file
  uint64_t offset_ = 0;  // up to where position_ tells of
  uint64_t ahead_ = 0;   // bytes of the file beyond that
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_LOGS_LOG_SPOOL_H_
