// Bringing what jobs have on this machine to the broker, with words of how far it is.
#ifndef MUSTER_CLIENTS_CLI_UPLOADING_H_
#define MUSTER_CLIENTS_CLI_UPLOADING_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clients/cli/verbs.h"
#include "clients/cpp/jobfile.h"

namespace muster::cli {

// The readings of files that change while they are read.
inline constexpr int kMaxReadings = 3;

// Reads what the jobs bring along and names it in their specs; the broker gets the list of the
// files, and none of them. Returns a sentence about the files and about how much of them the broker
// lacks; empty: the jobs bring none.
absl::StatusOr<std::string> ReadUploads(Session& session, client::JobFile* file);

// The same, and sends what the broker lacks. `check` is asked when it has the list, before the
// first file: a job that nobody takes needs none.
absl::Status SendUploads(Session& session, client::JobFile* file,
                         const std::function<absl::Status()>& check);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_UPLOADING_H_
