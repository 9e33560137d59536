// Reads TAO's status.json: a training's reports, one JSON object on each line. Pure.
#ifndef MUSTER_AGENTS_CORE_STATUS_JSON_H_
#define MUSTER_AGENTS_CORE_STATUS_JSON_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "muster/v1/job.pb.h"

namespace muster::agents {

// The file grows for as long as a training runs: only its end is read, which holds the last
// entries.
inline constexpr size_t kMaxStatusBytes = 1 << 20;
// A longer line is counted as one that cannot be read.
inline constexpr size_t kMaxStatusLineBytes = 64 << 10;

enum class TrainingStatus {
  kNone,     // no entry tells
  kRunning,  // STARTED, RUNNING
  kSuccess,  // SUCCESS
  kFailure,  // FAILURE
};

struct StatusFile {
  // The status of the last entry whose word is known. Other words (SKIPPED) say nothing about the
  // whole.
  TrainingStatus status = TrainingStatus::kNone;
  // The message of the last entry that has one, as TAO wrote it, cut after 4096 bytes.
  std::string message;
  // The last value of each number of the entries: "epoch", "kpi.val_loss". At most 100.
  std::map<std::string, double> numbers;
  size_t entries = 0;
  size_t bad_lines = 0;  // not counting a last line that is still being written
};

// `text` is the file, or its end, and may be any bytes; a first line that begins in its middle is a
// bad one.
StatusFile ReadStatusFile(std::string_view text);

// Returns the reason that a run is no success although its command ended with 0; nothing if it is
// one. TAO catches its own errors, so a last FAILURE is a failure of the program. A training that
// ended well says so, so an end without a SUCCESS is no success either.
std::optional<v1::Failure> JudgeTraining(const StatusFile& file);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_STATUS_JSON_H_
