// The last lines of a log.
#ifndef MUSTER_CLIENTS_CLI_TAIL_H_
#define MUSTER_CLIENTS_CLI_TAIL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "clients/cpp/client.h"

namespace muster::cli {

// Where each of so many lines begins is kept meanwhile: 8 MB.
inline constexpr uint64_t kMaxTailLines = 1'000'000;

// Moves the request's offset to where the last `lines` lines begin of what is there now of its log,
// 1 to kMaxTailLines of them. Reads the log once; bytes that the broker does not keep count as
// none.
absl::Status SkipToTail(client::Client& client, uint64_t lines, v1::ReadLogRequest* request);

// The last `lines` lines of what is there now of the request's log, each at most `max_bytes` long;
// a line that is longer loses its beginning. Empty: there are none, or the log could not be read by
// the deadline.
std::vector<std::string> LastLines(client::Client& client, v1::ReadLogRequest request, size_t lines,
                                   size_t max_bytes, absl::Time deadline);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_TAIL_H_
