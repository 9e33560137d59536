// Passing on the log of a rank.
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

// How a log is written. One output alone goes to standard output; of two, each goes to its own.
struct LogTarget {
  bool raw = false;               // to a terminal: what would act on it is not made harmless
  bool is_merged = false;         // both go to standard output
  std::string label;              // not empty: stands before each line
  LogObjects* objects = nullptr;  // if given, standard output gets JSON of both outputs; borrowed
};

struct CopiedLog {
  bool is_incomplete = false;  // some of it has not been delivered
  bool is_expired = false;     // some of it was removed
};

// Passes a log on until it ends. To a terminal, what would act on it is made harmless unless the
// target is raw; elsewhere the bytes go as they are. `pieces`, if not null, counts them as they are
// written. If the log is not complete, standard error says so.
absl::StatusOr<CopiedLog> CopyLog(client::Client& client, Terminal& terminal,
                                  const v1::ReadLogRequest& request, const LogTarget& target,
                                  std::atomic<uint64_t>* pieces = nullptr);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_COPY_LOG_H_
