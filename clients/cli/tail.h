// The last lines of a log.
#ifndef MUSTER_CLIENTS_CLI_TAIL_H_
#define MUSTER_CLIENTS_CLI_TAIL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "clients/cpp/client.h"

namespace muster::cli {

// The most that ReadLog counts.
inline constexpr uint32_t kMaxTailLines = 100'000;

// The last `lines` lines, 1 to kMaxTailLines, of what is there now of the request's log, each at
// most `max_bytes` long; a line that is longer loses its beginning. Empty: there are none, or the
// log could not be read by the deadline.
std::vector<std::string> LastLines(client::Client& client, v1::ReadLogRequest request, size_t lines,
                                   size_t max_bytes, absl::Time deadline);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_TAIL_H_
