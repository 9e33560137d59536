// Passes the log of a rank on.
#ifndef MUSTER_CLIENTS_CLI_COPY_LOG_H_
#define MUSTER_CLIENTS_CLI_COPY_LOG_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "clients/cli/log_objects.h"
#include "clients/cli/terminal.h"
#include "clients/cpp/client.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::cli {

// The form of a log. A single output goes to standard output; of two, each goes to its own stream.
struct LogTarget {
  bool raw = false;               // characters that affect a terminal pass unchanged
  bool is_merged = false;         // both outputs go to standard output
  std::string label;              // if not empty, it begins each line
  LogObjects* objects = nullptr;  // if given, standard output gets both outputs as JSON; borrowed
};

struct CopiedLog {
  bool is_incomplete = false;  // some of it has not been delivered
  bool is_expired = false;     // some of it was removed
};

// Passes a log on until it ends. On a terminal, characters that would affect it are shown as
// escapes unless the target is raw; elsewhere the bytes pass unchanged. `pieces`, if not null,
// counts the written pieces. If the log is not complete, standard error says so.
absl::StatusOr<CopiedLog> CopyLog(client::Client& client, Terminal& terminal,
                                  const v1::ReadLogRequest& request, const LogTarget& target,
                                  std::atomic<uint64_t>* pieces = nullptr);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_COPY_LOG_H_
