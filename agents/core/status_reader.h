// Finds the status.json of a run among its results, on the host that has them.
#ifndef MUSTER_AGENTS_CORE_STATUS_READER_H_
#define MUSTER_AGENTS_CORE_STATUS_READER_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/core/backend.h"
#include "agents/core/status_json.h"
#include "agents/hosts/host.h"

namespace muster::agents {

struct FoundStatus {
  StatusFile file;
  absl::Time modify_time;  // by the clock of the file server
};

// Any thread may use it. Calls block for as long as the host takes.
class StatusReader {
 public:
  // The host outlives it.
  explicit StatusReader(hosts::Host* host) : host_(*host) {}

  // Returns the newest status.json that this start of the run has written, at most two directories
  // below its results; nothing: the host says that there is none. An error: it cannot say.
  // `start_time`: when the command started, if that is known.
  absl::StatusOr<std::optional<FoundStatus>> Find(const RunOutput& output,
                                                  std::optional<absl::Time> start_time);

 private:
  // Returns the time at which the run began, by the clock of the file server that dates its
  // results, if that is known.
  absl::StatusOr<absl::Time> StartOf(const RunOutput& output, std::optional<absl::Time> start_time);
  absl::StatusOr<std::optional<FoundStatus>> FindIn(const std::string& directory, absl::Time since);

  hosts::Host& host_;
};

// Returns the part that people are told.
v1::Progress ProgressOf(const FoundStatus& found);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_STATUS_READER_H_
