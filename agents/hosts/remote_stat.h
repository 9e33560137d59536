// Reads the output of stat(1) of coreutils for a file.
#ifndef MUSTER_AGENTS_HOSTS_REMOTE_STAT_H_
#define MUSTER_AGENTS_HOSTS_REMOTE_STAT_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "agents/hosts/host.h"

namespace muster::hosts {

// Raw mode (hexadecimal), size, modification time (seconds with nine decimals).
inline constexpr char kStatFormat[] = "%f %s %.9Y";

// Reads one line of that format. UNAVAILABLE: it is none.
absl::StatusOr<FileInfo> ParseStat(std::string_view line);

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_REMOTE_STAT_H_
